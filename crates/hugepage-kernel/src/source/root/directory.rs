//! A directory of which several files are read.

use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::{PLAIN_READ, Root};
use crate::ReadError;

impl Root {
    /// Opens the directory `path` for several of its files, so that the kernel looks for their place only once.
    pub fn directory(&self, path: &str) -> Result<Directory<'_>, ReadError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat(CWD, self.path(path), flags, Mode::empty()) {
            Ok(descriptor) => Ok(Directory { root: self, path: path.to_owned(), descriptor }),
            Err(errno) => Err(self.error("open", path, errno.into())),
        }
    }
}

/// A directory that is open, so that its files are near.
#[derive(Debug)]
pub struct Directory<'a> {
    root: &'a Root,
    path: String,
    descriptor: OwnedFd,
}

impl Directory<'_> {
    /// The one number that its file `name` holds.
    pub fn read_number(&self, name: &str) -> Result<u64, ReadError> {
        let path = || format!("{}/{name}", self.path);
        if self.root.is_confined() || self.root.recorder.is_on() {
            return self.root.read_number(&path());
        }
        let opened = openat(&self.descriptor, name, PLAIN_READ, Mode::empty());
        match opened {
            Ok(file) => self.root.number(&path(), &file.into()),
            Err(errno) => Err(self.root.error("open", &path(), errno.into())),
        }
    }

    /// Gives `take` the bytes of its short file `name`, as [`Root::read_short`] does: neither a path nor a buffer is
    /// made for it, unless there is an error.
    pub fn read_bytes<T>(&self, name: &str, take: impl FnOnce(&[u8]) -> T) -> Result<T, ReadError> {
        let path = || format!("{}/{name}", self.path);
        if self.root.is_confined() || self.root.recorder.is_on() {
            return self.root.read_short(&path(), |text| take(text.as_bytes()));
        }
        let file = openat(&self.descriptor, name, PLAIN_READ, Mode::empty());
        let file = file.map_err(|errno| self.root.error("open", &path(), errno.into()))?;
        self.root.take_short(&path, &file.into(), take)
    }
}
