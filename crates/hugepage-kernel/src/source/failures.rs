//! What failed at the kernel's door since a thread began to read: not an answer of a file, but of what its process may have or do.

use std::cell::Cell;
use std::io;

use rustix::io::Errno;

/// EMFILE, ENFILE, ENOMEM.
const SHORT: u8 = 1;
/// EACCES, EPERM.
const DENIED: u8 = 2;
/// What no file answers that is read as it should be, whoever reads it, as EIO.
const FAILED: u8 = 4;

thread_local! {
    /// Those of these that came.
    static SEEN: Cell<u8> = const { Cell::new(0) };
}

/// Keeps in mind that something could not be read because this process has no more files or memory, may not, or another error came.
pub(crate) fn noted(error: impl Into<io::Error>) -> io::Error {
    let error = error.into();
    let kind = match Errno::from_io_error(&error) {
        Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => SHORT,
        Some(Errno::ACCESS | Errno::PERM) => DENIED,
        // That nothing is there, or no longer, or another kind of file.
        None
        | Some(
            Errno::NOENT
            | Errno::NOTDIR
            | Errno::SRCH
            | Errno::NAMETOOLONG
            | Errno::INVAL
            | Errno::ISDIR
            | Errno::NODEV
            | Errno::NXIO
            | Errno::OPNOTSUPP
            | Errno::NOTTY,
        ) => 0,
        Some(_) => FAILED,
    };
    SEEN.set(SEEN.get() | kind);
    error
}

/// Forgets what failed before: in a thread that begins to read.
pub fn forget() {
    SEEN.set(0);
}

fn is_seen(kinds: u8) -> bool {
    SEEN.get() & kinds != 0
}

/// Whether there were no more files or no more memory.
pub fn ran_short() -> bool {
    is_seen(SHORT)
}

/// Whether something may not be read, or could not be.
pub fn was_denied() -> bool {
    is_seen(DENIED | FAILED)
}

/// Whether something could not be read that nobody could.
pub fn has_failed() -> bool {
    is_seen(FAILED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_one_thread_alone() {
        forget();
        std::thread::spawn(|| {
            noted(Errno::IO);
            assert!(has_failed());
        })
        .join()
        .unwrap();
        assert!(!has_failed());
        noted(Errno::ACCESS);
        assert!(was_denied() && !has_failed() && !ran_short());
    }
}
