//! The root that readers read below: `/` of the running machine, or a tree of files that stands for one. The kernel's own files are
//! opened by name; where others lay the links, in a tree and in a container, a path is followed step by step.
//!
//! Files of database servers are opened by [`InstanceFiles`](crate::InstanceFiles) alone.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::process::geteuid;

use crate::ReadError;
use crate::source::failures::noted;
use crate::source::live_files;
use crate::stranger::beneath::{self, BeneathFile};

/// How long the machine has been running, including suspended time (proc(5)).
pub(crate) const UPTIME: &str = "/proc/uptime";
/// The longest file that is read: longer than any that is needed, and short enough not to fill memory.
const MAX_FILE_BYTES: usize = 16 << 20;
/// The size of a buffer that holds /proc/meminfo or /proc/PID/status of today's kernels twice over.
pub(crate) const BUFFER_BYTES: usize = 4096;

/// The place that stands for `/`: the running machine, a container on it, or a tree of files.
#[derive(Clone, Debug, Default)]
pub struct Root {
    /// The directory of the tree of files; `None` for the running machine.
    tree: Option<PathBuf>,
    /// The path from the top of the machine or the tree to here, which goes before every other path.
    prefix: String,
}

/// The root of the machine this runs on.
pub static ROOT: Root = Root {
    tree: None,
    prefix: String::new(),
};

impl Root {
    /// The machine this runs on.
    pub fn live() -> Self {
        ROOT.clone()
    }

    /// A tree of files that stands for a machine.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        Self {
            tree: Some(directory).filter(|directory| directory != Path::new("/")),
            ..Self::default()
        }
    }

    /// The tree below `path`, such as the files that a process in a container sees (`/proc/PID/root`, proc(5)).
    pub fn below(&self, path: &str) -> Self {
        Self {
            prefix: [&self.prefix, path].concat(),
            ..self.clone()
        }
    }

    /// Whether this is the running machine, so that system calls may answer instead of files.
    pub const fn is_live(&self) -> bool {
        self.tree.is_none() && self.prefix.is_empty()
    }

    /// Whether this root is a tree of files that stands for a machine.
    pub const fn is_tree(&self) -> bool {
        self.tree.is_some()
    }

    /// Whether the processes below it are those of the kernel that runs: a host's root that is mounted elsewhere has its /proc.
    pub fn shows_processes(&self) -> bool {
        self.is_live()
            || self
                .find("/proc", true)
                .and_then(|found| found.is_of_kernel())
                .unwrap_or(false)
    }

    /// The time now; of a tree the time at which the kernel wrote its /proc/uptime.
    pub fn now(&self) -> SystemTime {
        let written = || self.modified(UPTIME);
        if self.shows_processes() {
            SystemTime::now()
        } else {
            written().unwrap_or_else(SystemTime::now)
        }
    }

    /// Opens `path` for reading. Whatever is in its place, this does not wait for it.
    pub fn open(&self, path: &str) -> Result<File, ReadError> {
        let failed = |source| self.error("open", path, source);
        if self.is_live() {
            return live_files::open(path).map_err(failed);
        }
        let found = self.find(path, true).map_err(failed)?;
        let why = match () {
            () if !found.metadata.is_file() => Some("it is not a regular file"),
            () if self.is_tree() => self.of_another(&found).map_err(failed)?,
            // A container has the kernel's files too, and may have laid a link to them.
            () => {
                let is_of_kernel = found.is_of_kernel().map_err(failed)?;
                is_of_kernel.then_some("it is the kernel's")
            }
        };
        match why {
            Some(why) => Err(self.refuses(path, why)),
            None => found.open().map_err(failed),
        }
    }

    /// The whole text of `path`; bytes that are not UTF-8 are replaced.
    pub fn read(&self, path: &str) -> Result<String, ReadError> {
        let mut bytes = Vec::with_capacity(BUFFER_BYTES);
        let limit = u64::try_from(MAX_FILE_BYTES).unwrap_or(u64::MAX);
        let read = self.open(path)?.take(limit + 1).read_to_end(&mut bytes);
        if read.map_err(|source| self.error("read", path, source))? > MAX_FILE_BYTES {
            return Err(self.content(path, format!("it is longer than {MAX_FILE_BYTES} bytes")));
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Where the symbolic link `path` points to.
    pub fn read_link(&self, path: &str) -> Result<String, ReadError> {
        let target = if self.is_live() {
            live_files::link(path)
        } else {
            self.find(path, false).and_then(|found| found.target())
        };
        let target = target.map_err(|source| self.error("read", path, source))?;
        Ok(String::from_utf8_lossy(&target).into_owned())
    }

    /// Calls `each` with every name in the directory `path`, in the kernel's order.
    pub fn each_name(&self, path: &str, mut each: impl FnMut(&str)) -> Result<(), ReadError> {
        let listed = if self.is_live() {
            live_files::names(path, &mut each)
        } else {
            self.find(path, true).and_then(|found| {
                found
                    .names()?
                    .try_for_each(|name| name.map(|name| each(&name)))
            })
        };
        listed.map_err(|source| self.error("list", path, source))
    }

    /// The names in the directory `path`, sorted.
    pub fn list(&self, path: &str) -> Result<Vec<String>, ReadError> {
        let mut names = Vec::new();
        self.each_name(path, |name| names.push(name.to_owned()))?;
        names.sort_unstable();
        Ok(names)
    }

    /// The names in the directory `path`, sorted; none if it does not exist. A link that leads to nothing is an error: a file system may
    /// not be mounted.
    pub fn list_if_there(&self, path: &str) -> Result<Vec<String>, ReadError> {
        match self.list(path) {
            found if self.read_link(path).is_ok() => found,
            found => Ok(if_there(found)?.unwrap_or_default()),
        }
    }

    /// When the regular file `path` was last written to; `None` if there is none that can be seen.
    pub fn modified(&self, path: &str) -> Option<SystemTime> {
        let metadata = self.metadata(path).ok()?;
        metadata
            .is_file()
            .then(|| metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH))
    }

    /// Whether something is at `path` that can be seen.
    pub fn exists(&self, path: &str) -> bool {
        self.metadata(path).is_ok()
    }

    /// Device and inode of what `path` names; `None` if that is nothing.
    pub fn inode(&self, path: &str) -> Option<(u64, u64)> {
        let found = self.find(path, true).ok()?.metadata;
        Some((found.dev(), found.ino()))
    }

    /// The metadata of what `path` names, links followed. It is not opened.
    pub(crate) fn metadata(&self, path: &str) -> io::Result<Metadata> {
        if !self.is_live() {
            return Ok(self.find(path, true)?.metadata);
        }
        live_files::metadata(Path::new(path))
    }

    /// What `path` names, which nothing leads out of.
    pub fn find(&self, path: &str, follow: bool) -> io::Result<BeneathFile> {
        beneath::find(self.top()?, path, follow)
    }

    /// Why a file of a tree may not be read; `None` if it may. Whoever gives root a tree must not have it read what only root may,
    /// by another name of the same file.
    pub(crate) fn of_another(&self, found: &BeneathFile) -> io::Result<Option<&'static str>> {
        let Some(directory) = self.tree.as_ref().filter(|_| geteuid().is_root()) else {
            return Ok(None);
        };
        let file = &found.metadata;
        let tree = beneath::directory(directory)?.metadata;
        let has_names = file.uid() != 0 && file.nlink() > 1;
        let is_foreign = file.uid() != tree.uid() && (file.mode() & 0o004 == 0 || has_names);
        Ok(is_foreign.then_some("it is another user's than the tree"))
    }

    fn top(&self) -> io::Result<BeneathFile> {
        match &self.tree {
            Some(directory) if self.prefix.is_empty() => beneath::directory(directory),
            Some(directory) => beneath::find(beneath::directory(directory)?, &self.prefix, true),
            // The kernel's own link, to where a process has its root.
            None if !self.prefix.is_empty() => beneath::directory(Path::new(&self.prefix)),
            None => beneath::directory(Path::new("/")),
        }
    }

    /// The real place of `path`, which is absolute as the kernel names it.
    pub fn path(&self, path: &str) -> PathBuf {
        if self.is_live() {
            return PathBuf::from(path);
        }
        let top = self.tree.as_deref().unwrap_or(Path::new("/"));
        top.join([&self.prefix, path].concat().trim_start_matches('/'))
    }

    /// The real place of what `path` names, without links; `None` if that is nothing.
    pub fn path_without_links(&self, path: &str) -> Option<PathBuf> {
        self.find(path, true).ok()?.path().ok()
    }

    /// An error that says what is wrong with the content of `path`.
    pub fn content(&self, path: &str, problem: impl Into<String>) -> ReadError {
        ReadError::Content {
            path: self.path(path),
            problem: problem.into(),
        }
    }

    /// An error that says why this program does not open `path`, whoever it runs as.
    pub fn refuses(&self, path: &str, why: impl Into<String>) -> ReadError {
        ReadError::Refused {
            path: self.path(path),
            why: why.into(),
        }
    }

    /// An error of the operating system on `path`.
    pub fn error(&self, operation: &'static str, path: &str, source: io::Error) -> ReadError {
        ReadError::Io {
            operation,
            path: self.path(path),
            source: noted(source),
        }
    }
}

/// `Ok(None)` where the file does not exist, which is an answer and not a failure.
pub fn if_there<T>(result: Result<T, ReadError>) -> Result<Option<T>, ReadError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The same of what is only looked at: `Ok(None)` where nothing is at a path, or no directory on the way there.
pub fn found_if_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
