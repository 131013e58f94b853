//! Short files that the kernel writes in one go, as meminfo: one system call reads all of one, and nothing is allocated.

use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use crate::source::live_files;
use crate::source::root::BUFFER_BYTES;
use crate::{ReadError, Root};

impl Root {
    /// Gives `take` the text of the short file `path`.
    pub fn read_short<T>(&self, path: &str, take: impl FnOnce(&str) -> T) -> Result<T, ReadError> {
        self.take_text(path, &self.open(path)?, take)
    }

    /// The one number that `path` holds.
    pub fn read_number(&self, path: &str) -> Result<u64, ReadError> {
        self.number(path, &self.open(path)?)
    }

    /// Opens the directory `path` for several of its files, so that the kernel looks for their place only once.
    pub fn directory(&self, path: &str) -> Result<Directory<'_>, ReadError> {
        match live_files::directory(&self.path(path)) {
            Ok(descriptor) => Ok(Directory { root: self, path: path.to_owned(), descriptor }),
            Err(error) => Err(self.error("open", path, error)),
        }
    }

    fn take_text<T>(&self, path: &str, file: &File, take: impl FnOnce(&str) -> T) -> Result<T, ReadError> {
        self.take_short(&|| path.to_owned(), file, |bytes| as_text(bytes, take))
    }

    /// Reads a short file and parses it. `path` is called for an error, and for a file that is longer.
    fn take_short<T>(
        &self,
        path: &dyn Fn() -> String,
        file: &File,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, ReadError> {
        // The kernel fills it; zeroes before that would take as long as a small read.
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let bytes = loop {
            match rustix::io::read(file, &mut buffer) {
                Ok((bytes, _)) => break &*bytes,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.error("read", &path(), errno.into())),
            }
        };
        if bytes.len() == BUFFER_BYTES {
            return Ok(take(self.read(&path())?.as_bytes()));
        }
        Ok(take(bytes))
    }

    fn number(&self, path: &str, file: &File) -> Result<u64, ReadError> {
        self.take_text(path, file, |text| {
            let text = text.trim();
            text.parse().map_err(|_| self.content(path, format!("\"{text}\" is not a number")))
        })?
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
        let path = format!("{}/{name}", self.path);
        self.root.number(&path, &self.open(name, &|| path.clone())?)
    }

    /// Gives `take` the bytes of its short file `name`, as [`Root::read_short`] does; a path is made for an error alone.
    pub fn read_bytes<T>(&self, name: &str, take: impl FnOnce(&[u8]) -> T) -> Result<T, ReadError> {
        let path = || format!("{}/{name}", self.path);
        self.root.take_short(&path, &self.open(name, &path)?, take)
    }

    /// Opens the file: by the root where a path is followed step by step.
    fn open(&self, name: &str, path: &dyn Fn() -> String) -> Result<File, ReadError> {
        match self.root.is_live() {
            true => {
                live_files::open_in(&self.descriptor, name).map_err(|error| self.root.error("open", &path(), error))
            }
            false => self.root.open(&path()),
        }
    }
}

/// Gives `take` the text that `bytes` are; those that are not UTF-8 are replaced.
pub(crate) fn as_text<T>(bytes: &[u8], take: impl FnOnce(&str) -> T) -> T {
    match str::from_utf8(bytes) {
        Ok(text) => take(text),
        // from_utf8 looks at many bytes at once, from_utf8_lossy at each.
        Err(_) => take(&String::from_utf8_lossy(bytes)),
    }
}
