//! Files that only root can have written: regular ones that belong to root, in directories that belong to root, opened by descriptor,
//! few and short. A symbolic link is reported and not followed. In a tree, its owner takes the place of root.

use std::fs::Metadata;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;

use crate::source::failures::noted;
use crate::{Root, found_if_there};

/// The directory of what root tells this program.
const TOLD: &str = "/etc/hugepage-sidecar";
/// The bytes of one of them.
const MAX_BYTES: u64 = 64 << 10;

/// What stands at a path.
pub enum RootEntry {
    /// A regular file; its text.
    Text(String),
    /// A symbolic link; its target.
    Link(String),
    /// A directory.
    Directory,
}

/// The files of root's below a root, and how many more of them are opened.
pub struct RootFiles<'a> {
    pub(crate) root: &'a Root,
    left: usize,
}

impl<'a> RootFiles<'a> {
    /// Of which at most `left` are opened.
    pub fn new(root: &'a Root, left: usize) -> Self {
        Self { root, left }
    }

    /// The names in the directory `path`, sorted; none if it is not there. The error is why it is not read, a clause.
    pub fn names(&self, path: &str) -> Result<Vec<String>, String> {
        if !self.has_directory(path)? {
            return Ok(Vec::new());
        }
        self.root.list(path).map_err(|error| error.to_string())
    }

    /// Whether there is a directory `path`; an error if it is not root's alone.
    pub fn has_directory(&self, path: &str) -> Result<bool, String> {
        let Some(metadata) = there(path, self.root.metadata(path))? else {
            return Ok(false);
        };
        if !metadata.is_dir() || !self.is_of_root(&metadata) {
            return Err(format!("{path} is not a directory of root's alone"));
        }
        Ok(true)
    }

    /// What stands at `path`, whose directory is one of [`RootFiles::names`]; `None` if nothing does.
    pub fn read(&mut self, path: &str) -> Result<Option<RootEntry>, String> {
        let Some(found) = there(path, self.root.find(path, false))? else {
            return Ok(None);
        };
        let metadata = &found.metadata;
        if metadata.is_symlink() {
            let target = self
                .root
                .read_link(path)
                .map_err(|error| error.to_string())?;
            return Ok(Some(RootEntry::Link(target)));
        }
        if metadata.is_dir() {
            return Ok(Some(RootEntry::Directory));
        }
        let why = if !metadata.is_file() {
            "it is not a regular file"
        } else if !self.is_of_root(metadata) {
            "others than root may write to it"
        } else if metadata.len() > MAX_BYTES {
            "it is longer than 64 kB"
        } else if self.left == 0 {
            "too many files were read before it"
        } else {
            self.left -= 1;
            let mut bytes = Vec::new();
            let read = found
                .open()
                .and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes));
            read.map_err(|error| format!("{path} can't be read: {}", noted(error)))?;
            return Ok(Some(RootEntry::Text(
                String::from_utf8_lossy(&bytes).into_owned(),
            )));
        };
        Err(format!("{path} is not read: {why}"))
    }

    /// The lines of a file in [`TOLD`], without comments; none if there is no such file. The error is why it is not read: nobody but
    /// root may be able to write it.
    pub fn told_lines(&mut self, path: &str) -> Result<Vec<String>, String> {
        self.has_directory("/etc")?;
        self.has_directory(TOLD)?;
        let text = match self.read(path)? {
            Some(RootEntry::Text(text)) => text,
            Some(_) => return Err(format!("{path} is not read: it is not a regular file")),
            None => return Ok(Vec::new()),
        };
        let line = |line: &str| line.split('#').next().unwrap_or_default().trim().to_owned();
        let lines = text.lines().map(line).filter(|line| !line.is_empty());
        Ok(lines.collect())
    }

    fn is_of_root(&self, metadata: &Metadata) -> bool {
        let owner = if self.root.is_tree() {
            self.root.metadata("/").map_or(0, |top| top.uid())
        } else {
            0
        };
        metadata.uid() == owner && metadata.mode() & 0o022 == 0
    }
}

/// `Ok(None)` where nothing is at `path`.
fn there<T>(path: &str, found: io::Result<T>) -> Result<Option<T>, String> {
    found_if_there(found).map_err(|error| format!("{path} can't be looked at: {error}"))
}
