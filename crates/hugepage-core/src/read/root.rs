//! The tree that /proc and /sys are read from: `/` on a live host, a directory of files in a test or a capture.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::ReadError;

/// No file read here is anywhere near this long; a longer one is refused instead of filling memory.
const LONGEST: usize = 16 << 20;

/// Where `/` is.
#[derive(Clone, Debug)]
pub struct Root(PathBuf);

impl Root {
    /// The machine this runs on.
    pub fn live() -> Self {
        Self(PathBuf::from("/"))
    }

    /// A tree of files that stands for a machine.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// Whether this is the running machine, so that system calls may answer instead of files.
    pub fn is_live(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// The real place of `path`, which is absolute as the kernel names it.
    pub fn path(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// Opens `path` for reading.
    pub fn open(&self, path: &str) -> Result<File, ReadError> {
        File::open(self.path(path)).map_err(|source| self.error("open", path, source))
    }

    /// The whole text of `path`; bytes that are not UTF-8 are replaced.
    pub fn read(&self, path: &str) -> Result<String, ReadError> {
        let mut file = self.open(path)?;
        // Files of /proc have no size to ask for, so std's size hint would only cost system calls.
        let mut bytes = vec![0; 4096];
        let mut filled = 0;
        loop {
            match file.read(&mut bytes[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(self.error("read", path, source)),
            }
            if filled > LONGEST {
                return Err(self.content(path, format!("it is longer than {LONGEST} bytes")));
            }
            if filled == bytes.len() {
                bytes.resize(filled * 2, 0);
            }
        }
        bytes.truncate(filled);
        Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// The one number that `path` holds.
    pub fn read_number(&self, path: &str) -> Result<u64, ReadError> {
        let text = self.read(path)?;
        text.trim().parse().map_err(|_| self.content(path, format!("\"{}\" is not a number", text.trim())))
    }

    /// The names in the directory `path`, sorted.
    pub fn list(&self, path: &str) -> Result<Vec<String>, ReadError> {
        let entries = fs::read_dir(self.path(path)).map_err(|source| self.error("list", path, source))?;
        let mut names = entries
            .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|source| self.error("list", path, source))?;
        names.sort_unstable();
        Ok(names)
    }

    /// Where the symbolic link `path` points to.
    pub fn read_link(&self, path: &str) -> Result<String, ReadError> {
        let target = fs::read_link(self.path(path)).map_err(|source| self.error("read", path, source))?;
        Ok(target.to_string_lossy().into_owned())
    }

    /// Whether something is at `path` that can be seen.
    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// An error that says what is wrong with the content of `path`.
    pub fn content(&self, path: &str, problem: impl Into<String>) -> ReadError {
        ReadError::Content { path: self.path(path), problem: problem.into() }
    }

    /// An error of the operating system on `path`.
    pub fn error(&self, operation: &'static str, path: &str, source: io::Error) -> ReadError {
        ReadError::Io { operation, path: self.path(path), source }
    }
}

/// `Ok(None)` where the file does not exist, which is an answer and not a failure.
pub fn if_there<T>(result: Result<T, ReadError>) -> Result<Option<T>, ReadError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
