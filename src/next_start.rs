//! What the next restart asks for, as far as this process knows it without opening a file.
//!
//! At a reload the server marks each parameter whose value in the files differs and that only a start changes
//! (`GUC_PENDING_RESTART`, guc.c). If none is marked and no file is newer than the reload, a restart asks for the same. All
//! else only the server's program can tell: the [asker](crate::asker) runs it, and keeps its answer in shared memory.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use hugepage_kernel::mapping::maps;
use hugepage_kernel::postgresql::pg_control::RecoveryParameters;
use hugepage_kernel::{Notes, Root};
use hugepage_start::parts;
use pgrx::pg_sys;

use crate::configuration_files::{ConfigurationFile, ConfigurationFiles, FileStamp, stamp};
use crate::found::{Answer, Asked};
use crate::guc::{self, StartParameter};
use crate::{found, server, settings, shmem};

/// A note names at most so many parameters.
const MAX_NAMED: usize = 5;
/// For a library that is not preloaded, and so has nobody who asks.
const NOT_ASKED: &str = "the configuration files have changed since the start, and a value that the reload has refused is not \
                         seen here; SELECT * FROM hugepage_preflight() asks the server's program";

/// What this process knows of the next restart.
#[derive(Default)]
pub struct NextRestart {
    /// Identifies the start of the server, its files and their content, by which an answer of the asker is found.
    pub key: u64,
    /// Parameters whose values in the files differ.
    pending: Vec<String>,
    /// Parameters of which the files have a value that the server has refused at the last reload.
    refused: Vec<String>,
    /// Parameters of the command line that the files may set otherwise, or not at all: only `pg_ctl restart` repeats it.
    pub options: Vec<String>,
    /// The program and preloaded libraries that are no longer on disk, as text for notes.
    replaced: Vec<String>,
    /// What this process has not loaded yet, as text for notes; `None` if it has loaded all files.
    not_loaded: Option<String>,
    /// Files that can't be looked at, as text for notes: nothing shows that they have changed.
    not_seen: Option<String>,
    /// Whether a file has changed since the server started.
    has_changed: bool,
}

/// What is replaced on disk, with the stamps of the program and of the directory of libraries.
struct Replaced {
    of: [Option<FileStamp>; 2],
    files: Vec<String>,
}

thread_local! {
    static START_PARAMETERS: Rc<Vec<StartParameter>> = Rc::new(StartParameter::all());
    static REPLACED: RefCell<Option<Replaced>> = const { RefCell::new(None) };
}

impl NextRestart {
    /// What is known now.
    #[allow(unsafe_code)]
    pub fn now(root: &Root) -> Self {
        // SAFETY: times that each process has.
        let (reloaded, started) = unsafe { (pg_sys::PgReloadTime, pg_sys::PgStartTime) };
        let loaded = ConfigurationFiles::loaded(root, reloaded);
        let parameters = START_PARAMETERS.with(Rc::clone);
        let names = |wanted: &dyn Fn(&StartParameter) -> bool| -> Vec<String> {
            let wanted = parameters.iter().filter(|one| wanted(one)).map(StartParameter::name);
            wanted.filter(|name| parts::has_effect(name)).collect()
        };
        let is_confirmed = |one: &StartParameter| reloaded > started && one.is_in_files() && !one.is_pending();
        // A container repeats its command line.
        let may_lack_options = server::postmaster_pid() != 1;
        let mut next = Self {
            pending: names(&|one| one.is_pending() && !one.is_option()),
            options: names(&|one| may_lack_options && one.is_option() && !is_confirmed(one)),
            refused: loaded.refused.clone(),
            replaced: replaced(root, &loaded.program),
            ..Self::default()
        };
        let mut hasher = DefaultHasher::new();
        (started, &next.replaced).hash(&mut hasher);
        if !loaded.is_complete {
            next.not_seen = Some("not all files of the configuration can be watched".to_owned());
        }
        for file in &loaded.files {
            next.look_at(file, (reloaded, started), &mut hasher);
        }
        next.key = hasher.finish();
        next
    }

    fn look_at(&mut self, file: &ConfigurationFile, (reloaded, started): (i64, i64), hasher: &mut DefaultHasher) {
        let (name, seen) = (file.name.display(), file.stamp());
        // Files are written right before a start, not while it reads them.
        let loaded = reloaded - if reloaded > started { file_clock() } else { 0 };
        (&file.name, seen.as_ref().ok()).hash(hasher);
        let changed = seen.as_ref().ok().and_then(|stamp| Some(stamp.as_ref()?.changed_at()));
        self.has_changed |= changed > Some(started);
        match &seen {
            Err(error) => _ = self.not_seen.get_or_insert(format!("could not look at \"{name}\": {error}")),
            Ok(None) if !file.is_needed => {}
            Ok(None) => _ = self.not_loaded.get_or_insert(format!("\"{name}\" is gone since the last reload")),
            Ok(_) if changed > Some(loaded) => {
                let age = if changed > Some(reloaded) { "newer than" } else { "as new as" };
                self.not_loaded.get_or_insert(format!("\"{name}\" is {age} the last reload: SELECT pg_reload_conf()"));
            }
            Ok(_) => {}
        }
    }

    /// Whether a restart may ask for something else than the running server has.
    pub fn differs(&self) -> bool {
        let names = [&self.pending, &self.refused, &self.options, &self.replaced];
        self.not_loaded.is_some() || self.not_seen.is_some() || names.into_iter().any(|names| !names.is_empty())
    }

    /// Whether the asker is to ask the server's program: also after a reload of changed files, whose refused values are forgotten.
    pub fn is_to_ask(&self) -> bool {
        self.differs() || self.has_changed
    }

    /// The answer on a restart; `None` if it asks for what the running server has. `primary`: what a standby compares its own with.
    pub fn answer(&self, primary: Option<&RecoveryParameters>, notes: &mut Notes) -> Option<Answer> {
        let known = found::answer(self.key).filter(|_| self.not_seen.is_none());
        let (answer, recovery) = match known {
            Some(Asked { answer: Answer::Unknown(why), .. }) if self.is_to_ask() => {
                (Some(Answer::Unknown(format!("{}: {why}", self.note()))), None)
            }
            Some(Asked { answer: Answer::Unknown(_), .. }) => (None, Some(server::recovery_parameters())),
            Some(Asked { answer, recovery }) => (Some(answer), recovery),
            // The worker asks at once, and says what it hears: until then it warns of nothing that a reload has not shown.
            None if self.differs() || (self.has_changed && shmem::generation().is_some() && guc::is_session()) => {
                (Some(Answer::Unknown(format!("{}; {}", self.note(), self.who_asks()))), None)
            }
            None => {
                if self.has_changed {
                    notes.add(NOT_ASKED);
                }
                (None, Some(server::recovery_parameters()))
            }
        };
        checked(answer, recovery, primary)
    }

    /// What differs from the running server, as text for notes: names of parameters, no values.
    fn note(&self) -> String {
        let named = |names: &[String]| {
            let more = names.len().saturating_sub(MAX_NAMED);
            let shown = names[..names.len() - more].join(", ");
            if more > 0 { format!("{shown} and {more} more") } else { shown }
        };
        let mut parts: Vec<_> = self.not_seen.iter().chain(&self.not_loaded).cloned().collect();
        let mut part = |names: &[String], text: &str| {
            if !names.is_empty() {
                parts.push(text.replace("{}", &named(names)));
            }
        };
        part(&self.pending, "a restart is pending for {}");
        part(&self.refused, "the last reload has refused the value of {}");
        part(&self.options, "the command line sets {}, which only pg_ctl restart repeats");
        part(&self.replaced, "replaced on disk since the start: {}");
        if parts.is_empty() {
            "the configuration files have changed since the start".to_owned()
        } else {
            parts.join(", and ")
        }
    }

    /// Who asks the server's program, for a note without an answer.
    fn who_asks(&self) -> String {
        if !settings::ask_server_program() {
            return settings::IS_OFF.to_owned();
        }
        // Of files that nobody looks at an answer holds for the moment alone.
        if shmem::generation().is_none() || shmem::lacks_worker() || self.not_seen.is_some() {
            return "SELECT * FROM hugepage_preflight() asks the server's program".to_owned();
        }
        // A reload tells the worker; all else it finds at a sample.
        let is_told = self.not_loaded.is_none() && self.replaced.is_empty();
        let when = match settings::sample_interval() {
            _ if is_told => "within a minute",
            Some(interval) if interval <= Duration::from_secs(60) => "within a minute",
            Some(_) => "at its next sample",
            None => "after the next reload",
        };
        format!("the worker asks the server's program {when}, SELECT * FROM hugepage_preflight() at once")
    }
}

/// Microseconds by which the time of a change may be earlier than that of a reload before it: the first is that of a coarse clock, which
/// is up to two ticks late (`current_time()`, fs/inode.c), and a reload has its own a moment after it has read the files (guc-file.l).
#[allow(unsafe_code)]
fn file_clock() -> i64 {
    let mut tick = libc::timespec { tv_sec: 0, tv_nsec: 10_000_000 };
    // SAFETY: a clock of Linux, of which the kernel writes the resolution; an error leaves that of the slowest kernels.
    unsafe { libc::clock_getres(libc::CLOCK_REALTIME_COARSE, &raw mut tick) };
    tick.tv_nsec * 3 / 1000 + 1000
}

/// An answer as the current user may see it, unless a standby of `primary` would refuse its own settings, `recovery`.
pub fn checked(
    answer: Option<Answer>,
    recovery: Option<RecoveryParameters>,
    primary: Option<&RecoveryParameters>,
) -> Option<Answer> {
    match answer {
        Some(Answer::Refuses(error)) => Some(Answer::Refuses(shown(error))),
        answer => {
            let refusal = primary.zip(recovery).and_then(|(primary, own)| own.refusal(primary));
            refusal.map(Answer::Refuses).or(answer)
        }
    }
}

/// The server's error as the current user may see it: settings that are not loaded are only for those who may read `pg_file_settings`.
fn shown(error: String) -> String {
    // The worker and the postmaster write to the log alone.
    if !guc::is_session() || guc::may_see_file_settings() {
        return error;
    }
    let name = error.split_once("parameter \"").and_then(|(_, rest)| Some(rest.split_once('"')?.0));
    let is_name = |name: &&str| name.chars().all(|one| one.is_ascii_alphanumeric() || "_.".contains(one));
    match name.filter(is_name) {
        Some(name) => format!("the configuration files are refused for parameter \"{name}\""),
        None => "the configuration files are refused".to_owned(),
    }
}

/// The server's program and preloaded libraries that this process has mapped and that are no longer on disk: an update has
/// replaced them, and a start would run others. What can't be read counts as replaced.
fn replaced(root: &Root, program: &[Option<PathBuf>; 2]) -> Vec<String> {
    let stamps = [0, 1].map(|at: usize| program[at].as_ref().and_then(|path| stamp(path).ok().flatten()));
    let known = REPLACED
        .with_borrow(|known| known.as_ref().filter(|known| known.of == stamps).map(|known| known.files.clone()));
    known.unwrap_or_else(|| {
        let files = replaced_now(root).unwrap_or_else(|error| vec![error]);
        REPLACED.set(Some(Replaced { of: stamps, files: files.clone() }));
        files
    })
}

fn replaced_now(root: &Root) -> Result<Vec<String>, String> {
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
