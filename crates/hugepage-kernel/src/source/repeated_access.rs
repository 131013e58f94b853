//! Reads what an access log names once more, as a capture does.

use std::fs::File;
use std::time::SystemTime;

use crate::source::access_log::{AccessLog, FileAccess};
use crate::{InstanceFiles, ReadError, Root};

/// Reads a file again that was read before: a server's file as the same user.
#[derive(Clone, Debug)]
pub struct RepeatedAccess {
    root: Root,
    path: String,
    /// The files of each server that were read there, with the path as that server names it.
    servers: Vec<(InstanceFiles, String)>,
}

impl RepeatedAccess {
    /// Another access like one in `log`, to the file below `root`.
    pub fn new(root: &Root, log: &AccessLog, access: &FileAccess) -> Self {
        let servers = log.servers(access).into_iter().map(|server| {
            let path = access.path[server.prefix.len()..].to_owned();
            (InstanceFiles::again(root.below(&server.prefix), server.reader), path)
        });
        Self { root: root.clone(), path: access.path.clone(), servers: servers.collect() }
    }

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

    /// When the server's file or directory has changed last.
    pub fn changed(&self) -> Option<SystemTime> {
        self.servers.iter().find_map(|(files, path)| files.changed(path))
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

    /// An access of the same kind to the file `name` in the directory that was read.
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
