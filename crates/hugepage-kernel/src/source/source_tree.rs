//! A tree of files that stands for a machine, such as a capture. It comes from elsewhere, so it is not trusted: no link in it
//! leads out of it, and nothing but plain files is opened.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::process::geteuid;

use crate::escape::restored;
use crate::stranger::beneath::{self, BeneathFile, Place};

/// In a tree made by a capture: what its host refused to show, a line `ERRNO PATH` each, the path escaped.
pub const REFUSED: &str = "refused";
/// In a tree made by a capture: when files of servers have changed last, a line `SECONDS.NANOSECONDS PATH` each, since 1970,
/// the path escaped.
pub const CHANGED: &str = "changed";

/// The directory of a tree, and what a capture has told of its host besides.
#[derive(Debug)]
pub(crate) struct SourceTree {
    directory: PathBuf,
    /// The error numbers of what the captured host refused to show, by path.
    refused: BTreeMap<String, i32>,
    /// The time when each file of a server had changed last on the captured host, by path.
    changed: BTreeMap<String, SystemTime>,
}

impl SourceTree {
    /// The tree in `directory`, with the content of what a capture calls [`REFUSED`] and [`CHANGED`].
    pub fn new(directory: PathBuf, refused: &str, changed: &str) -> Self {
        let refusal =
            |line: &str| line.split_once(' ').and_then(|(errno, path)| Some((restored(path)?, errno.parse().ok()?)));
        let change = |line: &str| {
            let (time, path) = line.split_once(' ')?;
            let (seconds, rest) = time.split_once('.')?;
            let since = Duration::new(seconds.parse().ok()?, rest.parse().ok().filter(|rest| *rest < 1_000_000_000)?);
            Some((restored(path)?, SystemTime::UNIX_EPOCH.checked_add(since)?))
        };
        let refused = refused.lines().filter_map(refusal).collect();
        Self { directory, refused, changed: changed.lines().filter_map(change).collect() }
    }

    /// The real place of `path`, which is absolute in the tree.
    pub fn path(&self, path: &str) -> PathBuf {
        self.directory.join(path.trim_start_matches('/'))
    }

    /// The directory that the tree is in.
    pub fn top(&self) -> io::Result<Arc<Place>> {
        beneath::directory(&self.directory)
    }

    /// What the host that was captured refused to show at `path`; `None` if it showed it, or had nothing there.
    pub fn refusal(&self, path: &str) -> Option<io::Error> {
        self.refused.get(path).copied().map(io::Error::from_raw_os_error)
    }

    /// When `path` had changed last on the host that was captured; `None` if its tree does not say so.
    pub fn changed(&self, path: &str) -> Option<SystemTime> {
        self.changed.get(path).copied()
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
