//! What this process reads at the moment, told in memory that another process sees: a read of a file whose owner is hostile
//! may never return, and nothing but another process can say so.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// What is kept of a path, in bytes.
const MAX_PATH_BYTES: usize = 1024;
/// As many paths can be left out.
pub const MAX_LEFT_OUT: usize = 4;

static SHARED: OnceLock<&SharedReads> = OnceLock::new();

/// What the process that reads shares with the one that watches over it. Zeroes are a valid value.
#[derive(Debug)]
pub struct SharedReads {
    count: AtomicU64,
    current: SharedPath,
    left_out: [SharedPath; MAX_LEFT_OUT],
}

/// A path in memory that two processes share; empty for none.
#[derive(Debug)]
struct SharedPath {
    length: AtomicUsize,
    bytes: [AtomicU8; MAX_PATH_BYTES],
}

impl SharedReads {
    /// Tells from now on here what this process reads. Only the first call of a process has an effect.
    pub fn use_in_this_process(&'static self) {
        let _ = SHARED.set(self);
    }

    /// The path of the last read that was begun; its end is missing if it is long.
    pub fn path(&self) -> String {
        self.current.get()
    }

    /// The number of reads that were begun.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Refuses to read the `paths` and what is below them, because they do not answer.
    pub fn leave_out<'a>(&self, paths: impl Iterator<Item = &'a str>) {
        let none = std::iter::repeat("");
        self.left_out.iter().zip(paths.chain(none)).for_each(|(place, path)| place.set(&[path]));
    }

    fn begin(&self, parts: &[&str]) -> io::Result<()> {
        self.current.set(parts);
        self.count.fetch_add(1, Ordering::Relaxed);
        match self.left_out.iter().any(|left_out| left_out.has(parts)) {
            true => Err(io::Error::new(io::ErrorKind::TimedOut, "it does not answer")),
            false => Ok(()),
        }
    }
}

impl SharedPath {
    fn set(&self, parts: &[&str]) {
        self.length.store(0, Ordering::Relaxed);
        let bytes = parts.iter().flat_map(|part| part.bytes());
        let length = self.bytes.iter().zip(bytes).map(|(to, byte)| to.store(byte, Ordering::Relaxed)).count();
        self.length.store(length, Ordering::Release);
    }

    fn get(&self) -> String {
        let length = self.length.load(Ordering::Acquire).min(MAX_PATH_BYTES);
        let bytes: Vec<u8> = self.bytes[..length].iter().map(|byte| byte.load(Ordering::Relaxed)).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Whether it is the path of these parts, or one above it.
    fn has(&self, parts: &[&str]) -> bool {
        if self.length.load(Ordering::Acquire) == 0 {
            return false;
        }
        let path = parts.concat();
        path.strip_prefix(&self.get()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Tells that the path of these parts is read next; an error if it is left out.
pub(crate) fn begin(parts: &[&str]) -> io::Result<()> {
    SHARED.get().map_or(Ok(()), |shared| shared.begin(parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing was read yet, and nothing is left out.
    fn nothing() -> SharedReads {
        let none = || SharedPath { length: AtomicUsize::new(0), bytes: [const { AtomicU8::new(0) }; MAX_PATH_BYTES] };
        SharedReads { count: AtomicU64::new(0), current: none(), left_out: std::array::from_fn(|_| none()) }
    }

    #[test]
    fn the_last_path_is_shown() {
        let shared = nothing();
        for (parts, path) in [(&["/proc/7/root", "/etc/x"][..], "/proc/7/root/etc/x"), (&["/a"], "/a")] {
            shared.begin(parts).unwrap();
            assert_eq!(shared.path(), path);
        }
        shared.begin(&[&"/long".repeat(1000)]).unwrap();
        assert_eq!((shared.path().len(), shared.count()), (MAX_PATH_BYTES, 3));
    }

    #[test]
    fn a_process_is_left_out_with_all_that_is_below() {
        let shared = nothing();
        shared.leave_out(["/proc/12", "/data/conf"].into_iter());
        for path in ["/proc/12", "/proc/12/maps", "/data/conf/a"] {
            assert_eq!(shared.begin(&[path]).unwrap_err().kind(), io::ErrorKind::TimedOut, "{path}");
        }
        for path in ["/proc/1", "/proc/123/maps", "/data", "/data/conf2"] {
            shared.begin(&[path]).unwrap();
        }
        shared.leave_out(["/proc/12"].into_iter());
        shared.begin(&["/data/conf", "/a"]).unwrap();
    }
}
