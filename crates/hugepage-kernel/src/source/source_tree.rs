//! A tree of files that stands for a machine, and is not trusted: no link leads out of it, and only plain files are opened.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::geteuid;

use crate::stranger::beneath::{self, BeneathFile};

/// Why a file of the tree in `directory` may not be read; `None` if it may. Whoever gives root a tree must not have it read what only
/// root may, by another name of the same file.
pub(crate) fn of_another(directory: &Path, found: &BeneathFile) -> io::Result<Option<&'static str>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let top = beneath::directory(directory)?;
    let (file, tree) = (&found.metadata, &top.metadata);
    let is_foreign = file.uid() != tree.uid() && (file.mode() & 0o004 == 0 || (file.uid() != 0 && file.nlink() > 1));
    Ok(is_foreign.then_some("it is another user's than the tree"))
}
