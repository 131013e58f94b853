//! What a path names in one of the two sources: the running machine, or a tree of files that stands for one. The kernel's own
//! files are opened by name; where others lay the links, in a tree and in a container, a path is followed step by step.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::ReadError;
use crate::source::source_tree::SourceTree;
use crate::source::survey_cache::SurveyCache;
use crate::source::{current_read, live_files};
use crate::stranger::beneath::{self, BeneathFile, Known, Place};

/// The longest file that is read: longer than any that is needed, and short enough not to fill memory.
const MAX_FILE_BYTES: usize = 16 << 20;
/// The size of a buffer that holds /proc/meminfo or /proc/PID/status of today's kernels twice over.
pub(crate) const BUFFER_BYTES: usize = 4096;

/// Where paths begin, and what a survey has found there before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lookup {
    /// The tree of files; `None` for the running machine.
    tree: Option<Arc<SourceTree>>,
    /// The path from the top of the machine or the tree to here, which goes before every other path.
    prefix: String,
    survey: Option<Arc<SurveyCache<Place>>>,
}

impl Lookup {
    /// The tree in `directory`.
    pub fn of_tree(directory: PathBuf) -> Self {
        Self { tree: Some(Arc::new(SourceTree::new(directory))), ..Self::default() }
    }

    /// A lookup in the same source that begins at `path`.
    pub fn below(&self, path: &str) -> Self {
        Self { prefix: self.full(path), ..self.clone() }
    }

    /// The tree; `None` for the running machine.
    pub fn tree(&self) -> Option<&SourceTree> {
        self.tree.as_deref()
    }

    /// The path from the top to here.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether a path has to be followed step by step, because others lay the links in it.
    pub fn is_confined(&self) -> bool {
        self.tree.is_some() || !self.prefix.is_empty()
    }

    /// The path from the top to `path`.
    pub fn full(&self, path: &str) -> String {
        [&self.prefix, path].concat()
    }

    /// The real place of `path`.
    pub fn path(&self, path: &str) -> PathBuf {
        match &self.tree {
            Some(tree) => tree.path(&self.full(path)),
            None if self.prefix.is_empty() => PathBuf::from(path),
            None => Path::new("/").join(self.full(path).trim_start_matches('/')),
        }
    }

    /// A copy for one survey, which finds nothing twice.
    pub fn for_survey(&self) -> Self {
        Self { survey: Some(Arc::default()), ..self.clone() }
    }

    /// Forgets what the survey has found of processes.
    pub fn forget_processes(&self) {
        self.survey.iter().for_each(|survey| survey.forget_processes());
    }

    /// What the survey may still read of logs, in bytes; `None` outside of a survey.
    pub fn logs_left(&self) -> Option<&AtomicU64> {
        self.survey.as_deref().map(|survey| &survey.logs_left)
    }

    /// The text at `path`, from `read` where the survey does not have it yet.
    pub fn once(&self, path: &str, read: impl FnOnce() -> Result<Arc<str>, ReadError>) -> Result<Arc<str>, ReadError> {
        match &self.survey {
            Some(survey) => survey.text(self.full(path), read),
            None => read(),
        }
    }

    /// What `path` names, which nothing leads out of.
    pub fn find(&self, path: &str, follow: bool) -> io::Result<BeneathFile> {
        self.begin(path)?;
        let known = |cache| Known { cache, top: &self.prefix };
        beneath::find(self.top()?, path, follow, self.survey.as_deref().map(known))
    }

    /// Before each look at `path`: an error if it did not answer before.
    fn begin(&self, path: &str) -> io::Result<()> {
        current_read::begin(&[&self.prefix, path])
    }

    fn top(&self) -> io::Result<Arc<Place>> {
        let open = || match &self.tree {
            Some(tree) if self.prefix.is_empty() => tree.top(),
            Some(tree) => Ok(beneath::find(tree.top()?, &self.prefix, true, None)?.into_place()),
            // The kernel's own link, to where a process has its root.
            None if !self.prefix.is_empty() => beneath::directory(Path::new(&self.prefix)),
            None => beneath::directory(Path::new("/")),
        };
        match &self.survey {
            Some(survey) => survey.place(self.prefix.clone().into_bytes(), Place::is_directory, open),
            None => open(),
        }
    }

    /// Opens the file `path` for reading.
    pub fn open(&self, path: &str) -> Result<File, ReadError> {
        let failed = |source| self.error("open", path, source);
        if !self.is_confined() {
            return self.begin(path).and_then(|()| live_files::open(path)).map_err(failed);
        }
        let found = self.find(path, true).map_err(failed)?;
        let why = match &self.tree {
            _ if !found.metadata.is_file() => Some("it is not a regular file"),
            Some(tree) => tree.of_another(&found).map_err(failed)?,
            // A container has the kernel's files too, and may have laid a link to them.
            None => found.is_of_kernel().then_some("it is the kernel's"),
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
        Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// Calls `each` with every name in the directory `path`.
    pub fn names(&self, path: &str, each: &mut dyn FnMut(&str)) -> Result<(), ReadError> {
        let listed = match self.is_confined() {
            true => {
                self.find(path, true).and_then(|found| found.names()?.try_for_each(|name| name.map(|name| each(&name))))
            }
            false => self.begin(path).and_then(|()| live_files::names(path, each)),
        };
        listed.map_err(|source| self.error("list", path, source))
    }

    /// Where the symbolic link `path` points to.
    pub fn link(&self, path: &str) -> Result<String, ReadError> {
        let target = match self.is_confined() {
            true => self.find(path, false).and_then(|found| found.target()),
            false => self.begin(path).and_then(|()| live_files::link(path)),
        };
        let target = target.map_err(|source| self.error("read", path, source))?;
        Ok(String::from_utf8_lossy(&target).into_owned())
    }

    /// The metadata of the file at `path`, links followed.
    pub fn metadata(&self, path: &str) -> io::Result<Metadata> {
        if self.is_confined() {
            return Ok(self.find(path, true)?.metadata);
        }
        self.begin(path)?;
        live_files::metadata(Path::new(path))
    }

    /// An error of the operating system on `path`.
    pub fn error(&self, operation: &'static str, path: &str, source: io::Error) -> ReadError {
        ReadError::Io { operation, path: self.path(path), source }
    }

    /// An error that says why this program does not open `path`, whoever it runs as.
    pub fn refuses(&self, path: &str, why: impl Into<String>) -> ReadError {
        ReadError::Refused { path: self.path(path), why: why.into() }
    }

    /// An error that says what is wrong with the content of `path`.
    pub fn content(&self, path: &str, problem: impl Into<String>) -> ReadError {
        ReadError::Content { path: self.path(path), problem: problem.into() }
    }
}
