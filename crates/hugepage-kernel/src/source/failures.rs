//! What failed at the kernel's door since a process began to read: not an answer of a file, but of what this process may have or do.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

/// EMFILE, ENFILE, ENOMEM.
static SHORT: AtomicBool = AtomicBool::new(false);
/// What no file answers that is read as it should be, as EACCES and EIO.
static DENIED: AtomicBool = AtomicBool::new(false);

/// Keeps in mind that something could not be read because this process has no more files or memory, may not, or another error came.
pub(crate) fn noted(error: impl Into<io::Error>) -> io::Error {
    let error = error.into();
    match Errno::from_io_error(&error) {
        Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => SHORT.store(true, Ordering::Relaxed),
        // That nothing is there, or no longer, or another kind of file.
        None
        | Some(
            Errno::NOENT
            | Errno::NOTDIR
            | Errno::SRCH
            | Errno::LOOP
            | Errno::NAMETOOLONG
            | Errno::INVAL
            | Errno::ISDIR
            | Errno::NODEV
            | Errno::NXIO
            | Errno::OPNOTSUPP
            | Errno::NOTTY,
        ) => {}
        Some(_) => DENIED.store(true, Ordering::Relaxed),
    }
    error
}

/// Forgets what failed before: in a process that begins to read.
pub fn forget() {
    SHORT.store(false, Ordering::Relaxed);
    DENIED.store(false, Ordering::Relaxed);
}

/// Whether there were no more files or no more memory.
pub fn ran_short() -> bool {
    SHORT.load(Ordering::Relaxed)
}

/// Whether something may not be read, or could not be.
pub fn was_denied() -> bool {
    DENIED.load(Ordering::Relaxed)
}
