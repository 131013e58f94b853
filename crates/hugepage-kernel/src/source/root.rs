//! The tree that /proc and /sys are read from: `/` on a live host, a directory of files in a test or a capture.
//!
//! What is read here is the kernel's and the administrator's, and trusted. Files of database servers are another matter:
//! [`InstanceFiles`](crate::InstanceFiles) is the one door to them. A tree of files comes from elsewhere, so it is
//! not trusted either: no link in it leads out of it, and nothing but plain files is opened.

mod directory;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, Mode, OFlags, RawDir, openat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::ReadError;
use crate::source::access_log::{AccessKind, AccessLog, Recorder};
use crate::source::reader::Reader;
use crate::source::survey_cache::SurveyCache;
use crate::stranger::beneath::{self, BeneathFile, Known, Place};
pub use directory::Directory;

/// In a tree made by a capture: what its host refused to show, a line `ERRNO PATH` each.
pub const REFUSED: &str = "refused";
/// In a tree made by a capture: when files of servers have changed last, a line `SECONDS.NANOSECONDS PATH` each, since 1970.
pub const CHANGED: &str = "changed";
/// How long the machine has been running, including suspended time (proc(5)).
pub(crate) const UPTIME: &str = "/proc/uptime";
/// No file read here is anywhere near this long; a longer one is refused instead of filling memory.
const MAX_FILE_BYTES: usize = 16 << 20;
/// Holds /proc/meminfo and /proc/PID/status of today's kernels twice over.
const BUFFER_BYTES: usize = 4096;
/// What is read of a directory at once, as the C library does it.
const NAMES_BYTES: usize = 32 << 10;
/// Whatever is in the place of a file, an open for reading does not wait for it.
const PLAIN_READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Where `/` is.
#[derive(Clone, Debug)]
pub struct Root {
    /// `/`, or the directory that the tree is in.
    top: PathBuf,
    /// In front of every path that is noted or was refused: where this is below the root that those speak of.
    prefix: String,
    recorder: Recorder,
    /// By path, the error numbers of what the host that was captured refused to show.
    refused: BTreeMap<String, i32>,
    /// By path, when files of servers have changed last on the host that was captured.
    changed: BTreeMap<String, SystemTime>,
    /// What this survey has found before.
    survey: Option<Arc<SurveyCache<Place>>>,
}

impl Root {
    /// The machine this runs on.
    pub fn live() -> Self {
        Self {
            top: PathBuf::from("/"),
            prefix: String::new(),
            recorder: Recorder::default(),
            refused: BTreeMap::new(),
            changed: BTreeMap::new(),
            survey: None,
        }
    }

    /// The same for one survey: what it has found once below this root it does not look for again.
    pub fn for_survey(&self) -> Self {
        Self { survey: Some(Arc::default()), ..self.clone() }
    }

    /// Before a survey looks at another server: what it has read of processes is not that of a new one with the same number.
    pub fn forget_processes(&self) {
        if let Some(survey) = &self.survey {
            survey.forget_processes();
        }
    }

    /// A tree of files that stands for a machine.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        if directory == Path::new("/") {
            return Self::live();
        }
        let mut tree = Self { top: directory, ..Self::live() };
        let text = tree.read(&format!("/{REFUSED}")).unwrap_or_default();
        let refusal =
            |line: &str| line.split_once(' ').and_then(|(errno, path)| Some((path.to_owned(), errno.parse().ok()?)));
        tree.refused = text.lines().filter_map(refusal).collect();
        let text = tree.read(&format!("/{CHANGED}")).unwrap_or_default();
        let change = |line: &str| {
            let (time, path) = line.split_once(' ')?;
            let (seconds, rest) = time.split_once('.')?;
            let since = Duration::new(seconds.parse().ok()?, rest.parse().ok().filter(|rest| *rest < 1_000_000_000)?);
            Some((path.to_owned(), SystemTime::UNIX_EPOCH.checked_add(since)?))
        };
        tree.changed = text.lines().filter_map(change).collect();
        tree
    }

    /// The same place, where every access is recorded. It is no longer live: files answer, and no system calls, so that
    /// the log has what the same question needs of a tree of files.
    pub fn recording(&self) -> (Self, AccessLog) {
        let (recorder, log) = Recorder::with_log();
        (Self { recorder, ..self.clone() }, log)
    }

    /// The tree below `path`, such as the files that a process in a container sees (`/proc/PID/root`, proc(5)).
    pub fn below(&self, path: &str) -> Self {
        Self { prefix: format!("{}{path}", self.prefix), ..self.clone() }
    }

    /// Whether this is the running machine, so that system calls may answer instead of files.
    pub fn is_live(&self) -> bool {
        !self.is_tree() && self.prefix.is_empty() && !self.recorder.is_on()
    }

    /// Whether it is another place than `root`, which it was made from: that of a container.
    pub fn is_below(&self, root: &Self) -> bool {
        self.prefix != root.prefix
    }

    /// Whether it is a tree of files that stands for a machine.
    pub fn is_tree(&self) -> bool {
        // Compares bytes: every open asks this.
        self.top.as_os_str() != "/"
    }

    /// Whether `path` is a file of a tree, so that reading it asks nothing of a kernel. Where looks are noted, this is
    /// one.
    pub fn is_captured(&self, path: &str) -> bool {
        self.note(path, AccessKind::Content);
        self.is_tree()
    }

    /// The same where nothing is noted any more.
    pub(crate) fn unrecorded(&self) -> Self {
        Self { recorder: Recorder::default(), ..self.clone() }
    }

    /// Records an access to a server's file.
    pub(crate) fn note_of_server(&self, path: &str, kind: AccessKind, reader: &Reader) {
        self.recorder.add_of_server(&self.prefix, path, kind, reader);
    }

    /// `path` as the root knows it that this is below of.
    pub(crate) fn full(&self, path: &str) -> String {
        [&self.prefix, path].concat()
    }

    /// Whether a path has to be followed step by step, because others lay the links in it.
    fn is_confined(&self) -> bool {
        self.is_tree() || !self.prefix.is_empty()
    }

    /// What `path` names, which nothing leads out of.
    pub(crate) fn find(&self, path: &str, follow: bool) -> io::Result<BeneathFile> {
        let known = |top| Some(Known { cache: self.survey.as_deref()?, top });
        let found = beneath::find(self.place()?, path, follow, known(&self.prefix));
        found.map_err(|source| self.refusal(path, source))
    }

    /// Where this root is.
    fn place(&self) -> io::Result<Arc<Place>> {
        let open = || match (self.is_tree(), self.prefix.is_empty()) {
            (true, false) => {
                let top = beneath::find(beneath::directory(&self.top)?, &self.prefix, true, None)?;
                Ok(top.into_place())
            }
            // The kernel's own link, to where a process has its root.
            (false, false) => beneath::directory(Path::new(&self.prefix)),
            (_, true) => beneath::directory(&self.top),
        };
        match &self.survey {
            Some(survey) => survey.place(self.prefix.clone().into_bytes(), Place::is_directory, open),
            None => open(),
        }
    }

    /// Why a file of a tree may not be read; `None` if it may. Whoever gives root a tree must not have it read what only
    /// root may, by another name of the same file.
    pub(crate) fn of_another(&self, found: &BeneathFile) -> io::Result<Option<&'static str>> {
        if !geteuid().is_root() {
            return Ok(None);
        }
        let top = beneath::directory(&self.top)?;
        let (file, tree) = (&found.metadata, top.metadata());
        let is_foreign =
            file.uid() != tree.uid() && (file.mode() & 0o004 == 0 || (file.uid() != 0 && file.nlink() > 1));
        Ok(is_foreign.then_some("it is another user's than the tree"))
    }

    fn note(&self, path: &str, kind: AccessKind) {
        self.recorder.add(&self.prefix, path, kind);
    }

    /// The refusal of the host that was captured, instead of the error that its tree has nothing there.
    fn refusal(&self, path: &str, error: io::Error) -> io::Error {
        if self.refused.is_empty() || error.kind() != io::ErrorKind::NotFound {
            return error;
        }
        self.refused.get(&self.full(path)).map_or(error, |errno| io::Error::from_raw_os_error(*errno))
    }

    /// When `path` had changed last on the host that was captured; `None` if its tree does not say so.
    pub(crate) fn changed_at_capture(&self, path: &str) -> Option<SystemTime> {
        self.changed.get(&self.full(path)).copied()
    }

    /// The real place of `path`, which is absolute as the kernel names it.
    pub fn path(&self, path: &str) -> PathBuf {
        // Without a tree and a prefix, the path is its own real place.
        if self.is_confined() { self.top.join(self.full(path).trim_start_matches('/')) } else { PathBuf::from(path) }
    }

    /// Opens `path` for reading. Whatever is in its place, this does not wait for it.
    pub fn open(&self, path: &str) -> Result<File, ReadError> {
        self.note(path, AccessKind::Content);
        if self.is_confined() {
            return self.open_confined(path);
        }
        let opened = openat(CWD, path, PLAIN_READ, Mode::empty());
        opened.map(File::from).map_err(|errno| self.error("open", path, self.refusal(path, errno.into())))
    }

    fn open_confined(&self, path: &str) -> Result<File, ReadError> {
        let failed = |source| self.error("open", path, source);
        let found = self.find(path, true).map_err(failed)?;
        if !found.metadata.is_file() {
            return Err(self.refuses(path, "it is not a regular file"));
        }
        // A container has the kernel's files too, and may have laid a link to them.
        if !self.is_tree() && found.is_of_kernel() {
            return Err(self.refuses(path, "it is the kernel's"));
        }
        if self.is_tree()
            && let Some(why) = self.of_another(&found).map_err(failed)?
        {
            return Err(self.refuses(path, why));
        }
        found.open().map_err(failed)
    }

    /// The whole text of `path`; bytes that are not UTF-8 are replaced.
    pub fn read(&self, path: &str) -> Result<String, ReadError> {
        let mut file = self.open(path)?;
        let mut bytes = vec![0; BUFFER_BYTES];
        let mut filled = 0;
        loop {
            match self.read_some(path, &mut file, &mut bytes[filled..])? {
                0 => break,
                count => filled += count,
            }
            if filled > MAX_FILE_BYTES {
                return Err(self.content(path, format!("it is longer than {MAX_FILE_BYTES} bytes")));
            }
            if filled == bytes.len() {
                bytes.resize(filled * 2, 0);
            }
        }
        bytes.truncate(filled);
        Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// Gives `take` the text of a short file that the kernel writes in one go, as meminfo, the status of a process or
    /// an attribute in /sys: one system call reads all of it, and nothing is allocated.
    pub fn read_short<T>(&self, path: &str, take: impl FnOnce(&str) -> T) -> Result<T, ReadError> {
        self.take_text(path, &self.open(path)?, take)
    }

    /// The same of a file that a survey reads once, although several answers need it.
    pub fn read_once<T>(&self, path: &str, take: impl FnOnce(&str) -> T) -> Result<T, ReadError> {
        let Some(survey) = &self.survey else { return self.read_short(path, take) };
        self.note(path, AccessKind::Content);
        let text = survey.text(self.full(path), || self.read_short(path, |text| Arc::from(text)))?;
        Ok(take(&text))
    }

    /// The one number that `path` holds.
    pub fn read_number(&self, path: &str) -> Result<u64, ReadError> {
        self.number(path, &self.open(path)?)
    }

    fn take_text<T>(&self, path: &str, file: &File, take: impl FnOnce(&str) -> T) -> Result<T, ReadError> {
        self.take_short(&|| path.to_owned(), file, |bytes| as_text(bytes, take))
    }

    /// `path` is called for an error, and for a file that is longer.
    fn take_short<T>(
        &self,
        path: &dyn Fn() -> String,
        file: &File,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, ReadError> {
        // The kernel fills it; zeroes before that would take as long as a small read.
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let bytes = loop {
            match rustix::io::read(file, &mut buffer) {
                Ok((bytes, _)) => break &*bytes,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.error("read", &path(), errno.into())),
            }
        };
        if bytes.len() == BUFFER_BYTES {
            return Ok(take(self.read(&path())?.as_bytes()));
        }
        Ok(take(bytes))
    }

    fn number(&self, path: &str, file: &File) -> Result<u64, ReadError> {
        self.take_text(path, file, |text| {
            let text = text.trim();
            text.parse().map_err(|_| self.content(path, format!("\"{text}\" is not a number")))
        })?
    }

    fn read_some(&self, path: &str, file: &mut File, into: &mut [u8]) -> Result<usize, ReadError> {
        loop {
            match file.read(into) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result.map_err(|source| self.error("read", path, source)),
            }
        }
    }

    /// The names in the directory `path`, sorted.
    pub fn list(&self, path: &str) -> Result<Vec<String>, ReadError> {
        self.note(path, AccessKind::Names);
        let failed = |source| self.error("list", path, source);
        let mut names: Vec<String> = match self.is_confined() {
            true => self.find(path, true).and_then(|found| found.names()?.collect()).map_err(failed)?,
            false => {
                let entries = fs::read_dir(self.path(path)).map_err(|source| failed(self.refusal(path, source)))?;
                let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
                entries.map(|entry| entry.map(name)).collect::<Result<_, _>>().map_err(failed)?
            }
        };
        names.sort_unstable();
        Ok(names)
    }

    /// Calls `each` with every name in the directory `path`, in the kernel's order.
    pub fn each_name(&self, path: &str, mut each: impl FnMut(&str)) -> Result<(), ReadError> {
        if self.is_confined() {
            self.list(path)?.iter().for_each(|name| each(name));
            return Ok(());
        }
        self.note(path, AccessKind::Names);
        let failed = |errno: Errno| self.error("list", path, errno.into());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, path, flags, Mode::empty()).map_err(failed)?;
        let mut buffer = Vec::with_capacity(NAMES_BYTES);
        let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            each(&entry.map_err(failed)?.file_name().to_string_lossy());
        }
        Ok(())
    }

    /// Where the symbolic link `path` points to, which a survey reads once.
    pub fn read_link_once(&self, path: &str) -> Result<Arc<str>, ReadError> {
        let read = || self.read_link(path).map(Arc::from);
        let Some(survey) = &self.survey else { return read() };
        self.note(path, AccessKind::Link);
        survey.text(self.full(path), read)
    }

    /// Where the symbolic link `path` points to.
    pub fn read_link(&self, path: &str) -> Result<String, ReadError> {
        self.note(path, AccessKind::Link);
        let target = match self.is_confined() {
            true => self.find(path, false).and_then(|found| found.target()),
            false => fs::read_link(self.path(path)).map(|target| target.into_os_string().into_encoded_bytes()),
        };
        let target = target.map_err(|source| self.error("read", path, self.refusal(path, source)))?;
        Ok(String::from_utf8_lossy(&target).into_owned())
    }

    /// When the regular file `path` was last written to; `None` if there is none that can be seen.
    pub fn modified(&self, path: &str) -> Option<SystemTime> {
        self.note(path, AccessKind::Existence);
        let metadata = self.metadata(path).ok()?;
        metadata.is_file().then(|| metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH))
    }

    /// The time now; of a tree the time at which the kernel wrote its /proc/uptime.
    pub fn now(&self) -> SystemTime {
        let written = || self.modified(UPTIME);
        if self.is_live() { SystemTime::now() } else { written().unwrap_or_else(SystemTime::now) }
    }

    /// Whether something is at `path` that can be seen.
    pub fn exists(&self, path: &str) -> bool {
        self.note(path, AccessKind::Existence);
        self.metadata(path).is_ok()
    }

    /// Whether a directory is at `path` that can be seen.
    pub fn is_directory(&self, path: &str) -> bool {
        self.note(path, AccessKind::Existence);
        self.metadata(path).is_ok_and(|metadata| metadata.is_dir())
    }

    fn metadata(&self, path: &str) -> io::Result<fs::Metadata> {
        match self.is_confined() {
            true => self.find(path, true).map(|found| found.metadata),
            false => fs::metadata(self.path(path)),
        }
    }

    /// An error that says what is wrong with the content of `path`.
    pub fn content(&self, path: &str, problem: impl Into<String>) -> ReadError {
        ReadError::Content { path: self.path(path), problem: problem.into() }
    }

    /// An error that says why this program does not open `path`, whoever it runs as.
    pub fn refuses(&self, path: &str, why: impl Into<String>) -> ReadError {
        ReadError::Refused { path: self.path(path), why: why.into() }
    }

    /// An error of the operating system on `path`.
    pub fn error(&self, operation: &'static str, path: &str, source: io::Error) -> ReadError {
        ReadError::Io { operation, path: self.path(path), source }
    }
}

pub(crate) fn as_text<T>(bytes: &[u8], take: impl FnOnce(&str) -> T) -> T {
    match str::from_utf8(bytes) {
        Ok(text) => take(text),
        // from_utf8 looks at many bytes at once, from_utf8_lossy at each.
        Err(_) => take(&String::from_utf8_lossy(bytes)),
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
