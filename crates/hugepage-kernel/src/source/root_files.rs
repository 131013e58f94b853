//! Files that only root can have written: regular ones that belong to root, in directories that belong to root, opened by descriptor,
//! few and short. A symbolic link is reported and not followed. In a tree, its owner takes the place of root.

use std::fs::Metadata;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use crate::Root;

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
        let Some(metadata) = there(path, self.root.metadata(path))? else { return Ok(Vec::new()) };
        if !metadata.is_dir() || !self.is_of_root(&metadata) {
            return Err(format!("{path} is not a directory of root's alone"));
        }
        self.root.list(path).map_err(|error| error.to_string())
    }

    /// What stands at `path`, whose directory is one of [`RootFiles::names`]; `None` if nothing does.
    pub fn read(&mut self, path: &str) -> Result<Option<RootEntry>, String> {
        let Some(found) = there(path, self.root.find(path, false))? else { return Ok(None) };
        let metadata = &found.metadata;
        if metadata.is_symlink() {
            let target = self.root.read_link(path).map_err(|error| error.to_string())?;
            return Ok(Some(RootEntry::Link(target)));
        }
        if metadata.is_dir() {
            return Ok(Some(RootEntry::Directory));
        }
        let why = match () {
            () if !metadata.is_file() => "it is not a regular file",
            () if !self.is_of_root(metadata) => "others than root may write to it",
            () if metadata.len() > MAX_BYTES => "it is longer than 64 kB",
            () if self.left == 0 => "too many files were read before it",
            () => {
                self.left -= 1;
                let mut bytes = Vec::new();
                let read = found.open().and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes));
                read.map_err(|error| format!("{path} can't be read: {error}"))?;
                return Ok(Some(RootEntry::Text(String::from_utf8_lossy(&bytes).into_owned())));
            }
        };
        Err(format!("{path} is not read: {why}"))
    }

    /// An error if `path`, or something in it if it is a directory, was changed after the `boot`. Of a tree only the times of its
    /// content are the host's.
    pub fn check_age(&self, path: &str, boot: SystemTime) -> Result<(), String> {
        let is_directory = there(path, self.root.metadata(path))?.is_some_and(|found| found.is_dir());
        let names = if is_directory { self.root.list(path).map_err(|error| error.to_string())? } else { Vec::new() };
        let inside = names.iter().map(|name| format!("{path}/{name}"));
        for path in std::iter::once(path.to_owned()).chain(inside) {
            let Some(found) = there(&path, self.root.metadata(&path))? else { continue };
            let of_inode = Duration::from_secs(if self.root.is_live() { found.ctime().unsigned_abs() } else { 0 });
            let of_content = found.modified().map_err(|error| format!("{path} has no time: {error}"))?;
            if of_content.max(SystemTime::UNIX_EPOCH + of_inode) > boot {
                return Err(format!("{path} is newer than the boot"));
            }
        }
        Ok(())
    }

    fn is_of_root(&self, metadata: &Metadata) -> bool {
        let owner = if self.root.is_tree() { self.root.metadata("/").map_or(0, |top| top.uid()) } else { 0 };
        metadata.uid() == owner && metadata.mode() & 0o022 == 0
    }
}

/// `Ok(None)` where nothing is at `path`.
fn there<T>(path: &str, found: io::Result<T>) -> Result<Option<T>, String> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(format!("{path} can't be looked at: {error}")),
    }
}
