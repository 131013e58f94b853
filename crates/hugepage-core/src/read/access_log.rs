//! What of a root was looked at: the exact list of files that an answer came from, so that a capture needs no list of
//! its own that could miss one.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::ReadError;
use crate::read::{InstanceFiles, Root};

/// How something was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum How {
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
pub struct Look {
    /// Where.
    pub path: String,
    /// What for.
    pub how: How,
}

/// The servers whose files a look was at, each with the path as that server has it; none for the kernel's files.
type Servers = Vec<(InstanceFiles, String)>;

/// All looks so far; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Record(Arc<Mutex<BTreeMap<Look, Servers>>>);

impl Record {
    /// Notes one at a file of the kernel's or the administrator's.
    pub(super) fn add(&self, path: &str, how: How) {
        self.change(path, how, |_| ());
    }

    /// Notes one at a server's file, which that server names `inside`.
    pub(super) fn add_of_instance(&self, path: &str, how: How, files: InstanceFiles, inside: &str) {
        self.change(path, how, |servers| {
            // A path in full is one path inside of one root.
            if !servers.iter().any(|(known, _)| known.is_same(&files)) {
                servers.push((files, inside.to_owned()));
            }
        });
    }

    fn change(&self, path: &str, how: How, change: impl FnOnce(&mut Servers)) {
        let look = Look { path: path.to_owned(), how };
        change(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(look).or_default());
    }

    /// All of them, by path.
    pub fn looks(&self) -> Vec<Look> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// For looking again at the same: through the door that was taken then.
    pub fn again(&self, root: &Root, look: &Look) -> Again {
        let servers = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(look).cloned().unwrap_or_default();
        Again { root: root.clone(), path: look.path.clone(), servers }
    }
}

/// Looks again at what was looked at before: at a server's file as the same user.
#[derive(Clone, Debug)]
pub struct Again {
    root: Root,
    path: String,
    servers: Servers,
}

impl Again {
    /// Opens the file, which is a plain one.
    pub fn open(&self) -> Result<File, ReadError> {
        self.first(|root, path| root.open(path), InstanceFiles::open)
    }

    /// The names in the directory.
    pub fn list(&self) -> Result<Vec<String>, ReadError> {
        self.first(|root, path| root.list(path), InstanceFiles::list)
    }

    /// The target of the link.
    pub fn read_link(&self) -> Result<String, ReadError> {
        self.first(|root, path| root.read_link(path), InstanceFiles::read_link)
    }

    /// When the plain file was last written to.
    pub fn modified(&self) -> Option<SystemTime> {
        match self.servers.as_slice() {
            [] => self.root.modified(&self.path),
            servers => servers.iter().find_map(|(files, path)| files.modified(path)),
        }
    }

    /// Whether something is there.
    pub fn exists(&self) -> bool {
        match self.servers.as_slice() {
            [] => self.root.exists(&self.path),
            servers => servers.iter().any(|(files, path)| files.exists(path)),
        }
    }

    /// Whether a directory is there.
    pub fn is_directory(&self) -> bool {
        match self.servers.as_slice() {
            [] => self.root.is_directory(&self.path),
            servers => servers.iter().any(|(files, path)| files.is_directory(path)),
        }
    }

    /// The same door, to what is called `name` in the directory that was looked at.
    pub fn at(&self, name: &str) -> Self {
        let within = |path: &str| format!("{path}/{name}");
        let servers = self.servers.iter().map(|(files, path)| (files.clone(), within(path))).collect();
        Self { root: self.root.clone(), path: within(&self.path), servers }
    }

    /// The first answer; if nobody has one, the last reason.
    fn first<T>(
        &self,
        of_kernel: impl FnOnce(&Root, &str) -> Result<T, ReadError>,
        of_server: impl Fn(&InstanceFiles, &str) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let mut answer = None;
        for (files, path) in &self.servers {
            match of_server(files, path) {
                Ok(found) => return Ok(found),
                refused => answer = Some(refused),
            }
        }
        answer.unwrap_or_else(|| of_kernel(&self.root, &self.path))
    }
}
