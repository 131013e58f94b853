//! The running machine as its kernel shows it: what it and the administrator keep in files is trusted, and opened by name.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use super::door;
use super::failures::noted;
use rustix::fs::{CWD, Mode, OFlags, RawDir, openat, readlinkat};
use rustix::io::Errno;

/// The flags of an open for reading, which waits for nothing, whatever is in the place of a file.
const PLAIN_READ: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);
/// The bytes that are read of a directory at once, as the C library does it.
const NAMES_BYTES: usize = 32 << 10;

/// Opens the file `path` for reading.
pub(crate) fn open(path: &str) -> io::Result<File> {
    Ok(opened(path, PLAIN_READ)?.into())
}

/// Opens `path`, also where only another process may.
fn opened(path: &str, flags: OFlags) -> io::Result<OwnedFd> {
    openat(CWD, path, flags, Mode::empty())
        .or_else(|error| door::open(path, flags, error))
        .map_err(noted)
}

/// Opens the directory `path`, for its files to be opened in it.
pub(crate) fn directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    opened(&path.to_string_lossy(), flags)
}

/// Calls `each` with every name in the directory `path`, in the kernel's order.
pub(crate) fn names(path: &str, each: &mut dyn FnMut(&str)) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = opened(path, flags)?;
    let mut buffer = Vec::with_capacity(NAMES_BYTES);
    let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        match entry.map_err(noted)?.file_name() {
            name if name == c"." || name == c".." => {}
            name => each(&name.to_string_lossy()),
        }
    }
    Ok(())
}

/// The text of the symbolic link `path`.
pub(crate) fn link(path: &str) -> io::Result<Vec<u8>> {
    let target = readlinkat(CWD, path, Vec::new()).or_else(|error| {
        let named = door::open(path, OFlags::PATH | OFlags::CLOEXEC, error)?;
        readlinkat(CWD, of_descriptor(&named), Vec::new())
    });
    Ok(target.map_err(noted)?.into_bytes())
}

/// The kernel's own link to what a descriptor leads to.
pub(crate) fn of_descriptor(file: &impl AsRawFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// The metadata of the file at `path`, links followed.
pub(crate) fn metadata(path: &Path) -> io::Result<Metadata> {
    let found = fs::metadata(path).or_else(|error| {
        let errno = Errno::from_io_error(&error).ok_or(error)?;
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        File::from(door::open(&path.to_string_lossy(), flags, errno)?).metadata()
    });
    found.map_err(noted)
}
