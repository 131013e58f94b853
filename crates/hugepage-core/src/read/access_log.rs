//! What of a root was looked at: the exact list of files that an answer came from, so that a capture needs no list of
//! its own that could miss one.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// How something was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessKind {
    /// Where a symbolic link points to.
    Link,
    /// The content of a file.
    Content,
    /// The names in a directory.
    Names,
    /// Whether there is anything.
    Existence,
}

/// One look, at an absolute path as the kernel names it, there or not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileAccess {
    /// Where.
    pub path: String,
    /// What for.
    pub how: AccessKind,
}

/// All looks so far; clones share them.
#[derive(Clone, Debug, Default)]
pub struct AccessLog(Arc<Mutex<BTreeSet<FileAccess>>>);

impl AccessLog {
    /// Notes one.
    pub(super) fn add(&self, path: &str, how: AccessKind) {
        let look = FileAccess { path: path.to_owned(), how };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(look);
    }

    /// All of them, by path.
    pub fn looks(&self) -> Vec<FileAccess> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}
