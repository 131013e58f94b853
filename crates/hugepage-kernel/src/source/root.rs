//! The root that readers read below: `/` of the running machine, or a tree of files.
//!
//! Files of database servers are another matter than the kernel's: [`InstanceFiles`](crate::InstanceFiles) is the one door to
//! them.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::SystemTime;

use crate::ReadError;
use crate::source::lookup::Lookup;
use crate::stranger::beneath::BeneathFile;

/// How long the machine has been running, including suspended time (proc(5)).
pub(crate) const UPTIME: &str = "/proc/uptime";

/// The place that stands for `/`: the running machine, a container on it, or a tree of files.
#[derive(Clone, Debug)]
pub struct Root {
    lookup: Lookup,
}

impl Root {
    /// The machine this runs on.
    pub fn live() -> Self {
        Self { lookup: Lookup::default() }
    }

    /// A tree of files that stands for a machine.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        match directory.into() {
            directory if directory == Path::new("/") => Self::live(),
            directory => Self { lookup: Lookup::of_tree(directory) },
        }
    }

    /// A root for one survey, which opens nothing again that it has found once.
    pub fn for_survey(&self) -> Self {
        Self { lookup: self.lookup.for_survey() }
    }

    /// Forgets what a survey has read of processes, before it reads another server: a new process may have an old number.
    pub fn forget_processes(&self) {
        self.lookup.forget_processes();
    }

    /// What a survey may still read of logs, in bytes; `None` outside of one.
    pub(crate) fn logs_left(&self) -> Option<&AtomicU64> {
        self.lookup.logs_left()
    }

    /// The tree below `path`, such as the files that a process in a container sees (`/proc/PID/root`, proc(5)).
    pub fn below(&self, path: &str) -> Self {
        Self { lookup: self.lookup.below(path) }
    }

    /// Whether this is the running machine, so that system calls may answer instead of files.
    pub fn is_live(&self) -> bool {
        !self.lookup.is_confined()
    }

    /// Whether this root is another place than `root`, from which it was made: that of a container.
    pub fn is_below(&self, root: &Self) -> bool {
        self.lookup.prefix() != root.lookup.prefix()
    }

    /// Whether this root is a tree of files that stands for a machine.
    pub fn is_tree(&self) -> bool {
        self.lookup.tree().is_some()
    }

    /// The time now; of a tree the time at which the kernel wrote its /proc/uptime.
    pub fn now(&self) -> SystemTime {
        let written = || self.modified(UPTIME);
        if self.is_live() { SystemTime::now() } else { written().unwrap_or_else(SystemTime::now) }
    }

    /// Opens `path` for reading. Whatever is in its place, this does not wait for it.
    pub fn open(&self, path: &str) -> Result<File, ReadError> {
        self.lookup.open(path)
    }

    /// The whole text of `path`; bytes that are not UTF-8 are replaced.
    pub fn read(&self, path: &str) -> Result<String, ReadError> {
        self.lookup.read(path)
    }

    /// Gives `take` the text of a short file that a survey reads once, although several answers need it.
    pub fn read_once<T>(&self, path: &str, take: impl FnOnce(&str) -> T) -> Result<T, ReadError> {
        Ok(take(&self.lookup.once(path, || self.read_short(path, |text| text.into()))?))
    }

    /// Where the symbolic link `path` points to.
    pub fn read_link(&self, path: &str) -> Result<String, ReadError> {
        self.lookup.link(path)
    }

    /// Where the symbolic link `path` points to, which a survey reads once.
    pub fn read_link_once(&self, path: &str) -> Result<Arc<str>, ReadError> {
        self.lookup.once(path, || self.lookup.link(path).map(Arc::from))
    }

    /// Calls `each` with every name in the directory `path`, in the kernel's order.
    pub fn each_name(&self, path: &str, mut each: impl FnMut(&str)) -> Result<(), ReadError> {
        self.lookup.names(path, &mut each)
    }

    /// The names in the directory `path`, sorted.
    pub fn list(&self, path: &str) -> Result<Vec<String>, ReadError> {
        let mut names = Vec::new();
        self.each_name(path, |name| names.push(name.to_owned()))?;
        names.sort_unstable();
        Ok(names)
    }

    /// When the regular file `path` was last written to; `None` if there is none that can be seen.
    pub fn modified(&self, path: &str) -> Option<SystemTime> {
        let metadata = self.lookup.metadata(path).ok()?;
        metadata.is_file().then(|| metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH))
    }

    /// Whether something is at `path` that can be seen.
    pub fn exists(&self, path: &str) -> bool {
        self.lookup.metadata(path).is_ok()
    }

    /// Whether a directory is at `path` that can be seen.
    pub fn is_directory(&self, path: &str) -> bool {
        self.lookup.metadata(path).is_ok_and(|metadata| metadata.is_dir())
    }

    /// Device and inode of what `path` names; `None` if that is nothing.
    pub fn inode(&self, path: &str) -> Option<(u64, u64)> {
        let found = self.find(path, true).ok()?.metadata;
        Some((found.dev(), found.ino()))
    }

    /// The metadata of what `path` names, which is not opened.
    pub(crate) fn metadata(&self, path: &str) -> io::Result<Metadata> {
        self.lookup.metadata(path)
    }

    /// Who owns `path` itself, not what a link there leads to; `None` if there is nothing, and for a tree, whose files belong to no
    /// user of its host.
    pub fn owner(&self, path: &str) -> Option<u32> {
        if self.is_tree() { None } else { Some(self.find(path, false).ok()?.metadata.uid()) }
    }

    /// What `path` names of a server, which nothing leads out of.
    pub(crate) fn find(&self, path: &str, follow: bool) -> io::Result<BeneathFile> {
        self.lookup.find(path, follow)
    }

    /// Why a file of a tree may not be read; `None` if it may.
    pub(crate) fn of_another(&self, found: &BeneathFile) -> io::Result<Option<&'static str>> {
        self.lookup.tree().map_or(Ok(None), |tree| tree.of_another(found))
    }

    /// The real place of `path`, which is absolute as the kernel names it.
    pub fn path(&self, path: &str) -> PathBuf {
        self.lookup.path(path)
    }

    /// An error that says what is wrong with the content of `path`.
    pub fn content(&self, path: &str, problem: impl Into<String>) -> ReadError {
        self.lookup.content(path, problem)
    }

    /// An error that says why this program does not open `path`, whoever it runs as.
    pub fn refuses(&self, path: &str, why: impl Into<String>) -> ReadError {
        self.lookup.refuses(path, why)
    }

    /// An error of the operating system on `path`.
    pub fn error(&self, operation: &'static str, path: &str, source: io::Error) -> ReadError {
        self.lookup.error(operation, path, source)
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

#[cfg(test)]
mod tests;
