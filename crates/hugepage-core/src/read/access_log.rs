//! Which files of a root were read. A capture copies exactly these, so it needs no list of its own.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// What was asked of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessKind {
    /// Where a symbolic link points to.
    Link,
    /// The content of a file.
    Content,
    /// The names in a directory.
    Names,
    /// Whether it exists.
    Existence,
}

/// An access to an absolute path as the kernel names it, whether it exists or not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileAccess {
    /// The path.
    pub path: String,
    /// What was asked of it.
    pub kind: AccessKind,
}

/// All accesses so far; clones share them.
#[derive(Clone, Debug, Default)]
pub struct AccessLog(Arc<Mutex<BTreeSet<FileAccess>>>);

impl AccessLog {
    /// Every access so far, by path.
    pub fn accesses(&self) -> Vec<FileAccess> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// Adds to a log, or does nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Recorder(Option<AccessLog>);

impl Recorder {
    /// One with an empty log.
    pub(super) fn with_log() -> (Self, AccessLog) {
        let log = AccessLog::default();
        (Self(Some(log.clone())), log)
    }

    /// Whether accesses are recorded.
    pub(super) const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Records an access to `path` below `prefix`.
    pub(super) fn add(&self, prefix: &str, path: &str, kind: AccessKind) {
        if let Some(AccessLog(accesses)) = &self.0 {
            let access = FileAccess { path: format!("{prefix}{path}"), kind };
            accesses.lock().unwrap_or_else(PoisonError::into_inner).insert(access);
        }
    }
}
