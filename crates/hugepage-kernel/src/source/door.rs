//! The way to files of /proc that the kernel shows only to whoever may trace a process (ptrace(2)): a reader that has no capability asks
//! another process for them, which opens such files by their name and does nothing else.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// What opens a file of /proc with these flags.
pub type Opens = dyn Fn(&str, OFlags) -> io::Result<OwnedFd> + Send + Sync;

static DOOR: OnceLock<Box<Opens>> = OnceLock::new();

/// From now on `opens` opens what this process may not.
pub fn set(opens: Box<Opens>) {
    let _ = DOOR.set(opens);
}

/// Opens the file `path` of a process, which this process could not because of `error`.
pub(crate) fn open(path: &str, flags: OFlags, error: Errno) -> Result<OwnedFd, Errno> {
    let is_of_process = || {
        path.strip_prefix("/proc/")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    // A process that is hidden (hidepid, proc(5)) does not exist.
    match DOOR.get() {
        Some(door)
            if [Errno::ACCESS, Errno::PERM, Errno::NOENT].contains(&error) && is_of_process() =>
        {
            door(path, flags).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
        }
        _ => Err(error),
    }
}
