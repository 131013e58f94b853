//! Short files that the kernel writes in one go, as meminfo: one system call reads all of one. Of a file with a record for each thing it
//! may give as many records as fit, and the others later: such a file is none of these.

use std::fs::File;
use std::mem::MaybeUninit;

use rustix::io::Errno;

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

/// Gives `take` the text that `bytes` are; those that are not UTF-8 are replaced.
pub(crate) fn as_text<T>(bytes: &[u8], take: impl FnOnce(&str) -> T) -> T {
    match str::from_utf8(bytes) {
        Ok(text) => take(text),
        // from_utf8 looks at many bytes at once, from_utf8_lossy at each.
        Err(_) => take(&String::from_utf8_lossy(bytes)),
    }
}
