//! What a view knows of the next start. No program runs for it: the configuration on disk is compared with what runs, and
//! where it differs, only the answer counts that the worker has got from the server's program ([`crate::shmem`]).
//!
//! A comparison is kept in the process until one of its files changes; a repeated call costs a stat(2) for each.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hugepage_assess::model::Demand;
use hugepage_kernel::mapping::maps;
use hugepage_kernel::postgresql::pg_control::RecoveryParameters;
use hugepage_kernel::postgresql::postgresql_conf::Configuration;
use hugepage_kernel::{InstanceFiles, Notes, Root};
use hugepage_start::TwoStarts;

use super::on_disk::{OnDisk, ParameterDifference};
use super::overrides::{Answer, IS_OFF};
use crate::{guc, server, settings, shmem};

/// A file that has changed within this time may change again without another time stamp.
const TIMESTAMP_GRANULARITY: Duration = Duration::from_millis(20);
/// A file may change while it is read; after so many attempts the comparison holds for one call.
const MAX_ATTEMPTS: usize = 3;
/// A note names at most so many parameters.
const MAX_NAMED: usize = 5;
/// A note shows so many characters of a value.
const MAX_SHOWN: usize = 60;

/// The configuration on disk, compared with the running server.
pub struct Comparison {
    /// The configuration on disk; the error is why its files can't be read.
    pub on_disk: Result<OnDisk, Vec<String>>,
    /// The server's program and libraries that the running server has and the disk has no longer.
    replaced: Vec<String>,
}

/// Identifies a file and its content.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// A comparison, and the files that it depends on; `None` for one that does not exist.
struct CachedComparison {
    sources: Vec<PathBuf>,
    stamps: Vec<Option<FileStamp>>,
    comparison: Rc<Comparison>,
}

thread_local! {
    static CACHE: RefCell<Option<CachedComparison>> = const { RefCell::new(None) };
}

/// The answer on a start with the configuration on disk; `None` if the start asks for what the running server has.
/// `primary`: the settings that a standby compares its own with.
pub fn answer(root: &Root, primary: Option<&RecoveryParameters>) -> Option<Answer> {
    let comparison = Comparison::now(root);
    let answer = comparison.answer(root);
    match (&answer, &comparison.on_disk) {
        (Some(Answer::Refuses(_)), _) | (_, Err(_)) => answer,
        (_, Ok(on_disk)) => {
            let own = on_disk.recovery_parameters(None);
            primary.and_then(|primary| own.refusal(primary)).map(Answer::Refuses).or(answer)
        }
    }
}

impl Comparison {
    /// The comparison now.
    pub fn now(root: &Root) -> Rc<Self> {
        let cached = CACHE.with_borrow(|cached| {
            let cached = cached.as_ref()?;
            (stamps(&cached.sources) == cached.stamps).then(|| cached.comparison.clone())
        });
        cached.unwrap_or_else(|| {
            CACHE.set(None);
            Self::read(root)
        })
    }

    /// Whether a start may ask for something else than the running server has.
    fn differs(&self) -> bool {
        !self.replaced.is_empty() || !self.differences().is_empty()
    }

    /// The demand of a start, if it is known without the server's program; `None` if only that can tell.
    fn known(&self, root: &Root) -> Option<Demand> {
        let on_disk = self.on_disk.as_ref().ok().filter(|_| self.replaced.is_empty())?;
        on_disk.demand_of_running_size(root)
    }

    /// The configuration about which only the server's program can tell what a start would ask for; `None` if there is none.
    pub fn question(&self, root: &Root) -> Option<&OnDisk> {
        let on_disk = self.on_disk.as_ref().ok()?;
        (on_disk.files.error.is_none() && self.differs() && self.known(root).is_none()).then_some(on_disk)
    }

    /// Identifies what differs, by which an answer of the server's program is found.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.replaced.hash(&mut hasher);
        self.differences().hash(&mut hasher);
        hasher.finish()
    }

    fn differences(&self) -> &[ParameterDifference] {
        self.on_disk.as_ref().map_or(&[], |on_disk| on_disk.differences.as_slice())
    }

    fn answer(&self, root: &Root) -> Option<Answer> {
        match &self.on_disk {
            Err(why) => return Some(Answer::Unknown(why.join("; "))),
            Ok(OnDisk { files, .. }) if files.error.is_some() => return files.error.clone().map(Answer::Refuses),
            Ok(_) if !self.differs() => return None,
            Ok(_) => {}
        }
        if let Some(demand) = self.known(root) {
            return Some(Answer::Starts(TwoStarts { with_options: demand, without: None }));
        }
        match shmem::answer(self.fingerprint()) {
            Some(Answer::Unknown(why)) => Some(Answer::Unknown(format!("{}: {why}", self.note()))),
            Some(answer) => Some(answer),
            None => Some(Answer::Unknown(format!("{}: {}", self.note(), who_asks()))),
        }
    }

    /// The differences from the running server, as text for notes.
    fn note(&self) -> String {
        let may_see = guc::may_see_hidden();
        let mut named: Vec<_> = self.differences().iter().take(MAX_NAMED).map(|found| found.phrase(may_see)).collect();
        named.extend(self.replaced.iter().map(|file| format!("{file} was replaced")));
        let more = self.differences().len().saturating_sub(MAX_NAMED);
        if more > 0 {
            named.push(format!("{more} more"));
        }
        format!("the next start differs from the running server ({})", named.join(", "))
    }

    /// Reads the configuration and compares it, and keeps the result if the files did not change meanwhile.
    fn read(root: &Root) -> Rc<Self> {
        for _ in 0..MAX_ATTEMPTS {
            let (sources, problems) = sources(root);
            let before = stamps(&sources);
            let comparison = Rc::new(Self::compare(root, problems));
            if is_settled(&before) && self::sources(root).0 == sources && stamps(&sources) == before {
                CACHE.set(Some(CachedComparison { sources, stamps: before, comparison: comparison.clone() }));
                return comparison;
            }
            pgrx::check_for_interrupts!();
        }
        Rc::new(Self::compare(root, sources(root).1))
    }

    fn compare(root: &Root, problems: Vec<String>) -> Self {
        let read = || {
            let mut notes = Notes::default();
            let read = (OnDisk::read(root, &mut notes), replaced(root).map_err(|error| vec![error])?);
            let problems = notes.into_vec();
            if problems.is_empty() { Ok(read) } else { Err(problems) }
        };
        match if problems.is_empty() { read() } else { Err(problems) } {
            Ok((on_disk, replaced)) => Self { on_disk: Ok(on_disk), replaced },
            Err(problems) => Self { on_disk: Err(problems), replaced: Vec::new() },
        }
    }
}

/// The text that says who asks the server's program, for a note of a view without an answer.
fn who_asks() -> String {
    if !settings::ask_server_program() {
        IS_OFF.to_owned()
    } else if shmem::generation().is_some() {
        "the worker has not asked the server's program yet; SELECT * FROM hugepage_preflight() does".to_owned()
    } else {
        "SELECT * FROM hugepage_preflight() asks the server's program".to_owned()
    }
}

impl ParameterDifference {
    /// `shared_buffers is 128MB, on disk 30GB`.
    fn phrase(&self, may_see_hidden: bool) -> String {
        let name = &self.name;
        if self.is_hidden && !may_see_hidden {
            return format!("{name} is another one on disk");
        }
        let shown = |value: &str| match value.char_indices().nth(MAX_SHOWN) {
            Some((end, _)) => format!("\"{}...\"", &value[..end]),
            None if value.is_empty() => "\"\"".to_owned(),
            None => value.to_owned(),
        };
        let on_disk = self.on_disk.as_deref().map_or("not set".to_owned(), shown);
        let option = if self.is_option { " by the command line" } else { "" };
        format!("{name} is {}{option}, on disk {on_disk}", shown(&self.running))
    }
}

/// The files and directories that the comparison depends on, missing ones too, and why some can't be read. They are found by
/// a reader that opens plain files alone: the server's parser would wait for the writer of a named pipe.
fn sources(root: &Root) -> (Vec<PathBuf>, Vec<String>) {
    let mut problems = Notes::default();
    let own = InstanceFiles::own(root);
    let mut files = Configuration::default();
    files.add(&own, &server::config_file(), &mut problems);
    files.add(&own, &server::data_directory().join("postgresql.auto.conf"), &mut problems);
    let mut sources = files.sources;
    sources.extend([server::executable(), server::library_directory()]);
    (sources, problems.into_vec())
}

#[expect(clippy::disallowed_methods, reason = "the server's own files, by the server's own user")]
fn stamps(sources: &[PathBuf]) -> Vec<Option<FileStamp>> {
    let stamp = |file: Metadata| FileStamp {
        file: (file.dev(), file.ino()),
        size: file.size(),
        modified: (file.mtime(), file.mtime_nsec()),
        changed: (file.ctime(), file.ctime_nsec()),
    };
    sources.iter().map(|path| path.metadata().ok().map(stamp)).collect()
}

/// Whether no file has changed just now. A time stamp of the future says nothing, and never will.
fn is_settled(stamps: &[Option<FileStamp>]) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let changed = |stamp: &FileStamp| {
        let (seconds, nanos) = stamp.changed;
        Some(Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanos).ok()?))
    };
    stamps.iter().flatten().filter_map(changed).all(|changed| now.abs_diff(changed) > TIMESTAMP_GRANULARITY)
}

/// The server's program and preloaded libraries that this process has mapped and that are no longer on disk: an update has
/// replaced them, and a start would run others. The error is why that is unknown.
fn replaced(root: &Root) -> Result<Vec<String>, String> {
    let program = server::executable();
    let preloaded = guc::running(c"shared_preload_libraries").unwrap_or_default();
    let preloaded: Vec<_> =
        preloaded.split(',').filter_map(|name| stem(Path::new(name.trim().trim_matches('"')))).collect();
    let file = |path: &str| path.strip_suffix(" (deleted)").map(PathBuf::from);
    let is_of_start = |path: &Path| path == program || stem(path).is_some_and(|stem| preloaded.contains(&stem));
    let wanted = |mapping: &maps::Mapping| file(&mapping.path).is_some_and(|path| is_of_start(&path));
    let found = maps::read(root, "/proc/self/maps", wanted).map_err(|error| error.to_string())?;
    let names: BTreeSet<_> = found.iter().filter_map(|mapping| file(&mapping.path)).collect();
    Ok(names.iter().map(|path| format!("\"{}\"", path.display())).collect())
}

/// The name of a library without its directory and `.so`.
fn stem(path: &Path) -> Option<&OsStr> {
    if path.extension().is_some_and(|extension| extension == "so") { path.file_stem() } else { path.file_name() }
}
