//! The only way to open files that others own: the configuration, logs and directories of database servers.
//!
//! Whoever runs a server chooses where its files are and what is in their places. The kernel decides whether they may be read,
//! because this program reads them as the user of the server. It looks at a file before it opens it, by a descriptor that leads to it
//! even if something is renamed meanwhile. It opens plain files, no device, pipe or file of the kernel. Every read has a limit.

use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::proc::namespace;
use crate::stranger::beneath::BeneathFile;
use crate::{ReadError, Root, if_there};

/// More names than any directory has that is listed here.
const MAX_NAMES: usize = 10_000;
/// More directories and links than lead to any file of a server.
const MAX_STEPS_UP: usize = 100;

/// The files of one server, or of one that could be started.
#[derive(Clone, Debug)]
pub struct InstanceFiles {
    root: Root,
}

impl InstanceFiles {
    /// Files of the server with the process `pid`, as that process sees them from within its container.
    pub fn of_process(root: &Root, pid: i32) -> Self {
        Self {
            root: namespace::container(root, pid).unwrap_or_else(|| root.clone()),
        }
    }

    /// Files below `root`.
    pub fn own(root: &Root) -> Self {
        Self { root: root.clone() }
    }

    /// The root in which the files are: the host's, a container's, or a tree's.
    pub const fn root(&self) -> &Root {
        &self.root
    }

    /// Opens the plain file `path` for reading.
    pub fn open(&self, path: &str) -> Result<File, ReadError> {
        match self.open_found(path)? {
            Some(file) => Ok(file),
            None => Err(self.root.refuses(path, "it is not a regular file")),
        }
    }

    /// All of `path`, which is an error if it has more than `most` bytes.
    pub fn read(&self, path: &str, most: u64) -> Result<Vec<u8>, ReadError> {
        let Some(file) = self.open_found(path)? else {
            return Ok(Vec::new());
        };
        let length = file.metadata();
        let length = length.map_err(|source| self.root.error("read", path, source))?;
        // It may grow meanwhile.
        let mut bytes = Vec::new();
        if length.len() <= most {
            bytes = self.some_of(path, &file, most.saturating_add(1))?;
        }
        if length.len().max(bytes.len() as u64) > most {
            let why = format!("it is longer than {most} bytes");
            return Err(self.root.content(path, why));
        }
        Ok(bytes)
    }

    /// All of `path` as text; bytes that are not UTF-8 are replaced.
    pub fn read_text(&self, path: &str, most: u64) -> Result<String, ReadError> {
        let bytes = self.read(path, most)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The first bytes of `path`, however long it is.
    pub fn read_first(&self, path: &str, count: u64) -> Result<Vec<u8>, ReadError> {
        self.some_of(path, &self.open(path)?, count)
    }

    /// What `search` finds in the log `path`, of which it may read `left` bytes and subtracts those that it has read.
    pub fn search_log<T>(
        &self,
        path: &str,
        left: &mut u64,
        search: impl FnOnce(&mut File, &mut u64) -> io::Result<T>,
    ) -> Result<T, ReadError> {
        search(&mut self.open(path)?, left).map_err(|source| self.root.error("read", path, source))
    }

    /// The names in the directory `path`, sorted.
    pub fn list(&self, path: &str) -> Result<Vec<String>, ReadError> {
        let failed = |source| self.root.error("list", path, source);
        let found = self.root.find(path, true).map_err(failed)?;
        let mut names = Vec::new();
        for name in found.names().map_err(failed)? {
            names.push(name.map_err(failed)?);
            if names.len() > MAX_NAMES {
                return Err(self
                    .root
                    .content(path, format!("it has more than {MAX_NAMES} names")));
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Where the symbolic link `path` points to.
    pub fn read_link(&self, path: &str) -> Result<String, ReadError> {
        let target = self.root.find(path, false).and_then(|found| found.target());
        let target = target.map_err(|source| self.root.error("read", path, source))?;
        Ok(String::from_utf8_lossy(&target).into_owned())
    }

    /// The user who owns the file or directory `path`.
    pub fn owner(&self, path: &str) -> Result<u32, ReadError> {
        let found = self
            .root
            .find(path, true)
            .map_err(|source| self.root.error("open", path, source))?;
        Ok(found.metadata.uid())
    }

    /// Whether `path` is certainly not there; false if that is not visible.
    pub fn is_absent(&self, path: &str) -> bool {
        self.owner(path).is_err_and(|error| error.is_not_found())
    }

    /// The users besides root who own the file `path`, its directory, or a link on the way there: with several one of them can have
    /// another's file in its place.
    pub fn owners(&self, path: &str) -> Result<BTreeSet<u32>, ReadError> {
        let failed = |source| self.root.error("open", path, source);
        let mut owners = BTreeSet::new();
        for path in [
            Path::new(path),
            Path::new(path).parent().unwrap_or(Path::new("/")),
        ] {
            let found = self
                .root
                .find(&path.to_string_lossy(), true)
                .map_err(failed)?;
            owners.extend(found.link_owners);
            owners.insert(found.metadata.uid());
        }
        owners.remove(&0);
        Ok(owners)
    }

    /// The last change of what `path` names or of a link on the way to it, and what has changed: it, or if nothing is there the
    /// nearest directory that is, from which it may have been removed. `None` if nothing has a time. A copy of a host has of its times
    /// only those of what is in files.
    pub fn last_change(&self, path: &Path) -> Result<Option<(SystemTime, PathBuf)>, ReadError> {
        if !self.root.shows_processes() {
            let modified = self.root.modified(&path.to_string_lossy());
            return Ok(modified.map(|at| (at, path.to_owned())));
        }
        let mut place = path.to_owned();
        for _ in 0..MAX_STEPS_UP {
            let name = place.to_string_lossy().into_owned();
            match self.root.find(&name, true) {
                Ok(found) => return Ok(Some((found.changed, place))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(self.root.error("look at", &name, error)),
            }
            let Some(parent) = place.parent() else { break };
            let target = if_there(self.read_link(&name))?;
            place = target.map_or_else(|| parent.to_owned(), |target| parent.join(target));
        }
        Ok(None)
    }

    /// `Ok(None)` for /dev/null, in whose place a file would be empty: it is not opened either.
    fn open_found(&self, path: &str) -> Result<Option<File>, ReadError> {
        let failed = |source| self.root.error("open", path, source);
        let found = self.root.find(path, true).map_err(failed)?;
        if is_null(&found.metadata) {
            return Ok(None);
        }
        if let Some(why) = self.refusal(&found).map_err(failed)? {
            return Err(self.root.refuses(path, why));
        }
        #[cfg(test)]
        tests::note_opened(&found.metadata);
        found.open().map(Some).map_err(failed)
    }

    /// Why this is not to be opened; `None` if it is.
    fn refusal(&self, found: &BeneathFile) -> io::Result<Option<&'static str>> {
        if !found.metadata.is_file() {
            Ok(Some("it is not a regular file"))
        } else if found.is_of_kernel()? {
            Ok(Some("it is the kernel's"))
        } else {
            self.root.of_another(found)
        }
    }

    fn some_of(&self, path: &str, file: &File, count: u64) -> Result<Vec<u8>, ReadError> {
        let mut bytes = Vec::new();
        file.take(count)
            .read_to_end(&mut bytes)
            .map_err(|source| self.root.error("read", path, source))?;
        Ok(bytes)
    }
}

/// The null device (null(4)).
fn is_null(metadata: &Metadata) -> bool {
    const CHARACTER_DEVICE: u32 = 0o020_000;
    metadata.mode() & 0o170_000 == CHARACTER_DEVICE && metadata.rdev() == rustix::fs::makedev(1, 3)
}

#[cfg(test)]
mod tests;
