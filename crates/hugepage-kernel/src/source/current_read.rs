//! What this process reads at the moment, in memory that another process sees: a read of a file whose owner is hostile
//! may never return, and nothing but another process can say so.

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

/// What is kept of a path, in bytes.
const MAX_PATH_BYTES: usize = 1024;

static SHARED: AtomicPtr<[AtomicU8; MAX_PATH_BYTES]> = AtomicPtr::new(ptr::null_mut());

/// The path that a process reads, in memory that it shares with the one that made it; zeroes end it.
#[derive(Debug)]
pub struct CurrentRead(*mut [AtomicU8; MAX_PATH_BYTES]);

impl CurrentRead {
    /// Memory for one process.
    pub fn new() -> io::Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: the kernel chooses an address where nothing is.
        #[allow(unsafe_code)]
        let address =
            unsafe { libc::mmap(ptr::null_mut(), MAX_PATH_BYTES, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        if address == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Self(address.cast())) }
    }

    /// Tells from now on here what this process reads.
    pub fn use_in_this_process(&self) {
        SHARED.store(self.0, Ordering::Relaxed);
    }

    /// The path of the last read that was begun; its end is missing if it is long.
    pub fn path(&self) -> String {
        // SAFETY: it is mapped until it is dropped, and zeroes are a valid value.
        #[allow(unsafe_code)]
        let bytes = unsafe { &*self.0 }.iter().map(|byte| byte.load(Ordering::Relaxed));
        String::from_utf8_lossy(&bytes.take_while(|byte| *byte > 0).collect::<Vec<_>>()).into_owned()
    }
}

impl Drop for CurrentRead {
    fn drop(&mut self) {
        // SAFETY: nobody else of this process has it: only a child tells there what it reads, in a mapping of its own.
        #[allow(unsafe_code)]
        unsafe {
            libc::munmap(self.0.cast(), MAX_PATH_BYTES);
        }
    }
}

/// Tells that the path of these parts is read next.
pub(crate) fn begin(parts: &[&str]) {
    // SAFETY: a process that has set it keeps the memory until its end.
    #[allow(unsafe_code)]
    let Some(shared) = (unsafe { SHARED.load(Ordering::Relaxed).as_ref() }) else { return };
    let bytes = parts.iter().flat_map(|part| part.bytes()).take(MAX_PATH_BYTES - 1).chain([0]);
    shared.iter().zip(bytes).for_each(|(to, byte)| to.store(byte, Ordering::Relaxed));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_path_is_shown() {
        let shared = CurrentRead::new().unwrap();
        begin(&["/nobody is told"]);
        assert_eq!(shared.path(), "");
        // Other tests read meanwhile, and tell it here.
        shared.use_in_this_process();
        begin(&["/proc/7/root", "/etc/x"]);
        begin(&[&"/long".repeat(1000)]);
        assert!((1..MAX_PATH_BYTES).contains(&shared.path().len()));
        std::mem::forget(shared);
    }
}
