//! The running machine as its kernel shows it: what it and the administrator keep in files is trusted, and opened by name.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, RawDir, openat, readlinkat};

/// The flags of an open for reading, which waits for nothing, whatever is in the place of a file.
const PLAIN_READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
/// The bytes that are read of a directory at once, as the C library does it.
const NAMES_BYTES: usize = 32 << 10;

/// Opens the file `path` for reading.
pub(crate) fn open(path: &str) -> io::Result<File> {
    open_in(CWD, path)
}

/// Opens the file `name` of an open directory for reading.
pub(crate) fn open_in(directory: impl AsFd, name: &str) -> io::Result<File> {
    Ok(openat(directory, name, PLAIN_READ, Mode::empty())?.into())
}

/// Opens the directory `path`, for its files to be opened in it.
pub(crate) fn directory(path: &Path) -> io::Result<OwnedFd> {
    Ok(openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Calls `each` with every name in the directory `path`, in the kernel's order.
pub(crate) fn names(path: &str, each: &mut dyn FnMut(&str)) -> io::Result<()> {
    let directory = openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut buffer = Vec::with_capacity(NAMES_BYTES);
    let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        match entry?.file_name() {
            name if name == c"." || name == c".." => {}
            name => each(&name.to_string_lossy()),
        }
    }
    Ok(())
}

/// The text of the symbolic link `path`.
pub(crate) fn link(path: &str) -> io::Result<Vec<u8>> {
    Ok(readlinkat(CWD, path, Vec::new())?.into_bytes())
}

/// The metadata of the file at `path`, links followed.
pub(crate) fn metadata(path: &Path) -> io::Result<Metadata> {
    fs::metadata(path)
}
