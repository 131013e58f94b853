//! A tree of files that stands for a machine. It comes from elsewhere, so it is not trusted: no link in it
//! leads out of it, and nothing but plain files is opened.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::process::geteuid;

use crate::stranger::beneath::{self, BeneathFile, Place};

/// The directory of a tree.
#[derive(Debug)]
pub(crate) struct SourceTree {
    directory: PathBuf,
}

impl SourceTree {
    /// The tree in `directory`.
    pub const fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// The real place of `path`, which is absolute in the tree.
    pub fn path(&self, path: &str) -> PathBuf {
        self.directory.join(path.trim_start_matches('/'))
    }

    /// The directory that the tree is in.
    pub fn top(&self) -> io::Result<Arc<Place>> {
        beneath::directory(&self.directory)
    }

    /// Why a file of the tree may not be read; `None` if it may. Whoever gives root a tree must not have it read what only
    /// root may, by another name of the same file.
    pub fn of_another(&self, found: &BeneathFile) -> io::Result<Option<&'static str>> {
        if !geteuid().is_root() {
            return Ok(None);
        }
        let top = self.top()?;
        let (file, tree) = (&found.metadata, top.metadata());
        let is_foreign =
            file.uid() != tree.uid() && (file.mode() & 0o004 == 0 || (file.uid() != 0 && file.nlink() > 1));
        Ok(is_foreign.then_some("it is another user's than the tree"))
    }
}
