//! Files of the kernel that stay open, so that a repeated read is one system call: to open and to close one takes
//! several times as long as to read it.
//!
//! The kernel writes the text of a file in /proc, /sys or a cgroup anew whenever it is read from its start, so that a file
//! which was open before gives no older an answer. A file of another file system, such as that of lxcfs, whose pages the
//! kernel may cache, is not kept.

use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::fstatfs;

/// More than one answer reads, and than all of them do on a server in the first few levels of cgroups.
const MAX_FILES: usize = 16;
/// linux/magic.h: proc, sysfs, cgroup and cgroup2.
const OF_KERNEL: [u64; 4] = [0x9fa0, 0x6265_6572, 0x0027_e0eb, 0x6367_7270];

/// The files, by their paths. They must not outlive a fork, because /proc/self stays that of the process that opened it.
#[derive(Debug)]
pub struct KeptFiles {
    files: Mutex<Vec<(String, Arc<File>)>>,
    /// Asks whether one descriptor more may stay open.
    acquire: fn() -> bool,
    /// Says that one was closed.
    release: fn(),
}

impl KeptFiles {
    /// None yet. `acquire` is asked before a file is kept, and `release` is called after it was closed.
    pub fn new(acquire: fn() -> bool, release: fn()) -> Arc<Self> {
        Arc::new(Self { files: Mutex::default(), acquire, release })
    }

    /// The open file of `path`.
    pub(super) fn get(&self, path: &str) -> Option<Arc<File>> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.iter().find(|(kept, _)| kept == path).map(|(_, file)| Arc::clone(file))
    }

    /// Keeps `file`, if it is of the kernel and there is room.
    pub(super) fn keep(&self, path: &str, file: &Arc<File>) {
        let is_of_kernel = fstatfs(file)
            .is_ok_and(|system| u64::try_from(system.f_type).is_ok_and(|magic| OF_KERNEL.contains(&magic)));
        if !is_of_kernel || !(self.acquire)() {
            return;
        }
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if files.len() == MAX_FILES {
            // A cgroup that was left, perhaps.
            files.remove(0);
            (self.release)();
        }
        files.push((path.to_owned(), Arc::clone(file)));
    }

    /// Closes the file of `path`, which could not be read any more.
    pub(super) fn forget(&self, path: &str) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = files.iter().position(|(kept, _)| kept == path) {
            files.remove(index);
            (self.release)();
        }
    }
}
