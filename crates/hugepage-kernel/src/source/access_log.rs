//! Which files of a root were read. A capture copies exactly these, so it needs no list of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::source::reader::Reader;

/// What was asked of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessKind {
    /// The target of a symbolic link.
    Link,
    /// The content of a file.
    Content,
    /// The names in a directory.
    Names,
    /// Whether the path exists.
    Existence,
    /// When the file or directory has changed last.
    Change,
}

/// An access to an absolute path as the kernel names it, whether it exists or not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileAccess {
    /// The path.
    pub path: String,
    /// What was asked of it.
    pub kind: AccessKind,
}

/// An access to a server's file, at the path that follows `prefix`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerAccess {
    pub prefix: String,
    pub reader: Reader,
}

/// All accesses so far; clones share them.
#[derive(Clone, Debug, Default)]
pub struct AccessLog(Arc<Mutex<BTreeMap<FileAccess, Vec<ServerAccess>>>>);

impl AccessLog {
    /// Every access so far, by path.
    pub fn accesses(&self) -> Vec<FileAccess> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// Whether the content of `path` was read.
    pub fn has(&self, path: &str) -> bool {
        let access = FileAccess { path: path.to_owned(), kind: AccessKind::Content };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&access)
    }

    /// The servers for which that file was read; none for the kernel's files.
    pub(crate) fn servers(&self, access: &FileAccess) -> Vec<ServerAccess> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(access).cloned().unwrap_or_default()
    }
}

/// Adds to a log, or does nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder(Option<AccessLog>);

impl Recorder {
    /// A recorder with an empty log.
    pub(crate) fn with_log() -> (Self, AccessLog) {
        let log = AccessLog::default();
        (Self(Some(log.clone())), log)
    }

    /// Whether accesses are recorded.
    pub(crate) const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Records an access to `path` below `prefix`, a file of the kernel's or the administrator's.
    pub(crate) fn add(&self, prefix: &str, path: &str, kind: AccessKind) {
        self.change(prefix, path, kind, |_| ());
    }

    /// Records an access to a server's file.
    pub(crate) fn add_of_server(&self, prefix: &str, path: &str, kind: AccessKind, reader: &Reader) {
        self.change(prefix, path, kind, |servers| {
            let server = ServerAccess { prefix: prefix.to_owned(), reader: reader.clone() };
            if !servers.contains(&server) {
                servers.push(server);
            }
        });
    }

    fn change(&self, prefix: &str, path: &str, kind: AccessKind, change: impl FnOnce(&mut Vec<ServerAccess>)) {
        if let Some(AccessLog(accesses)) = &self.0 {
            let access = FileAccess { path: format!("{prefix}{path}"), kind };
            change(accesses.lock().unwrap_or_else(PoisonError::into_inner).entry(access).or_default());
        }
    }
}
