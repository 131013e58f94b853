//! Short files that the kernel writes in one go, as meminfo: one system call reads all of one.

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
        self.read_short(path, |text| self.number(path, text))?
    }

    /// Opens the directory `path` for several of its files, so that the kernel looks for their place only once.
    pub fn directory(&self, path: &str) -> Result<Directory<'_>, ReadError> {
        match live_files::directory(&self.path(path)) {
            Ok(descriptor) => Ok(Directory {
                root: self,
                path: path.to_owned(),
                descriptor,
            }),
            Err(error) => Err(self.error("open", path, error)),
        }
    }

    /// Reads a short file. One that is longer is opened again.
    fn take_text<T>(
        &self,
        path: &str,
        file: &File,
        take: impl FnOnce(&str) -> T,
    ) -> Result<T, ReadError> {
        // The kernel fills it; zeroes before that would take as long as a small read.
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let bytes = loop {
            match rustix::io::read(file, &mut buffer) {
                Ok((bytes, _)) => break &*bytes,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.error("read", path, errno.into())),
            }
        };
        if bytes.len() == BUFFER_BYTES {
            return Ok(take(&self.read(path)?));
        }
        Ok(as_text(bytes, take))
    }

    pub(crate) fn number(&self, path: &str, text: &str) -> Result<u64, ReadError> {
        let text = text.trim();
        text.parse()
            .map_err(|_| self.content(path, format!("\"{text}\" is not a number")))
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
        self.read_short(name, |text| self.root.number(&path, text))?
    }

    /// Gives `take` the text of its short file `name`: opened by the root where a path is followed step by step.
    pub fn read_short<T>(&self, name: &str, take: impl FnOnce(&str) -> T) -> Result<T, ReadError> {
        let path = format!("{}/{name}", self.path);
        let near = self
            .root
            .is_live()
            .then(|| live_files::open_in(&self.descriptor, name).ok());
        match near.flatten() {
            Some(file) => self.root.take_text(&path, &file, take),
            None => self.root.read_short(&path, take),
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
