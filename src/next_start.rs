//! What the next restart asks for, as far as this process knows it without opening a file.
//!
//! At a reload the server marks each parameter whose value in the files differs and that only a start changes
//! (`GUC_PENDING_RESTART`, guc.c). If none is marked and no file is newer than the reload, a restart asks for the same. All
//! else only the server's program can tell: the [asker](crate::asker) runs it, and keeps its answer in shared memory.

use std::cell::RefCell;
use std::ffi::CString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use hugepage_kernel::ROOT;
use hugepage_kernel::mapping::maps;
use hugepage_kernel::postgresql::pg_control::RecoveryParameters;
use hugepage_start::{SAYS, parts};
use pgrx::pg_sys;

use crate::configuration_files::{ConfigurationFile, ConfigurationFiles, FileStamp, stamp};
use crate::found::{Answer, Asked};
use crate::guc::{self, StartParameter};
use crate::loaded::Load;
use crate::{server, settings, shared, shmem, standby};

/// A note names at most so many parameters.
const MAX_NAMED: usize = 5;
/// A reload leaves no trace of a value that it refuses where it has an earlier one from a file.
const FORGOTTEN: &str = "the configuration files have changed since the start, and a value that the reload has refused is not \
                         seen here";

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

/// What is replaced on disk, with the stamps of the program and of the libraries.
struct Replaced {
    of: Vec<(PathBuf, Option<FileStamp>)>,
    files: Vec<String>,
}

thread_local! {
    static START_PARAMETERS: Rc<Vec<StartParameter>> = Rc::new(StartParameter::all());
    static REPLACED: RefCell<Option<Replaced>> = const { RefCell::new(None) };
}

/// Whether an option of the server's command line sets the parameter `name`, which only a start changes.
pub fn is_option(name: &str) -> bool {
    let is_it = |one: &StartParameter| one.is_option() && one.name() == name;
    START_PARAMETERS.with(|all| all.iter().any(is_it))
}

impl NextRestart {
    /// What is known now.
    #[allow(unsafe_code)]
    pub fn now() -> Self {
        // SAFETY: times that each process has.
        let (reloaded, started) = unsafe { (pg_sys::PgReloadTime, pg_sys::PgStartTime) };
        let loaded = ConfigurationFiles::loaded(reloaded);
        let parameters = START_PARAMETERS.with(Rc::clone);
        let names = |wanted: &dyn Fn(&StartParameter) -> bool| -> Vec<String> {
            let wanted = parameters
                .iter()
                .filter(|one| wanted(one))
                .map(StartParameter::name);
            wanted.filter(|name| parts::has_effect(name)).collect()
        };
        let is_confirmed =
            |one: &StartParameter| reloaded > started && one.is_in_files() && !one.is_pending();
        // A container repeats its command line.
        let may_lack_options = server::postmaster_pid() != 1;
        let mut next = Self {
            pending: names(&|one| one.is_pending() && !one.is_option()),
            options: names(&|one| may_lack_options && one.is_option() && !is_confirmed(one)),
            refused: loaded.refused.clone(),
            replaced: replaced(started),
            ..Self::default()
        };
        let mut hasher = DefaultHasher::new();
        (started, &next.replaced, standby::has_signal_file()).hash(&mut hasher);
        if !loaded.is_complete {
            next.not_seen = Some("not all files of the configuration can be watched".to_owned());
        }
        let load = Load::new(reloaded, started);
        for file in &loaded.files {
            next.look_at(file, &load, &mut hasher);
        }
        next.key = hasher.finish();
        next
    }

    fn look_at(&mut self, file: &ConfigurationFile, load: &Load, hasher: &mut DefaultHasher) {
        let seen = file.stamp();
        (&file.name, seen.as_ref().ok()).hash(hasher);
        let seen = match &seen {
            Ok(seen) => seen.as_ref(),
            Err(error) => {
                let name = file.name.display();
                self.not_seen
                    .get_or_insert(format!("could not look at \"{name}\": {error}"));
                return;
            }
        };
        self.has_changed |= seen.is_some_and(|seen| seen.changed_at() > load.started);
        self.not_loaded = self.not_loaded.take().or(load.doubt(file, seen));
    }

    /// Whether a restart may ask for something else than the running server has.
    pub fn differs(&self) -> bool {
        let names = [&self.pending, &self.refused, &self.options, &self.replaced];
        self.not_loaded.is_some()
            || self.not_seen.is_some()
            || names.into_iter().any(|names| !names.is_empty())
    }

    /// Whether the asker is to ask the server's program: also after a reload of changed files, whose refused values are forgotten.
    pub fn is_to_ask(&self) -> bool {
        self.differs() || self.has_changed
    }

    /// The answer on a restart; `None` if it asks for what the running server has. `primary`: what a standby compares its own with.
    pub fn answer(&self, primary: Option<&RecoveryParameters>) -> Option<Answer> {
        let known = shared::answer(self.key).filter(|_| self.not_seen.is_none());
        // The worker asks at once, and says what it hears: until then it warns of nothing that a reload has not shown.
        let is_open = self.differs() || (self.has_changed && guc::is_session());
        let (unknown, asked) = match known {
            Some(Asked {
                answer: Answer::Unknown(why),
                ..
            }) => (self.is_to_ask().then(|| format!(": {why}")), None),
            None => (is_open.then(|| format!("; {}", self.who_asks())), None),
            asked => (None, asked),
        };
        let unknown = unknown.map(|why| Asked::unknown(self.note() + &why));
        match asked.or(unknown) {
            Some(Asked { answer, recovery }) => checked(Some(answer), recovery, primary),
            None => checked(None, Some(server::recovery_parameters()), primary),
        }
    }

    /// What differs from the running server, as text for notes: names of parameters, no values.
    fn note(&self) -> String {
        let named = |names: &[String]| {
            let more = names.len().saturating_sub(MAX_NAMED);
            let shown = names[..names.len() - more].join(", ");
            if more > 0 {
                format!("{shown} and {more} more")
            } else {
                shown
            }
        };
        let mut parts: Vec<_> = self
            .not_seen
            .iter()
            .chain(&self.not_loaded)
            .cloned()
            .collect();
        let mut part = |names: &[String], text: &str| {
            if !names.is_empty() {
                parts.push(text.replace("{}", &named(names)));
            }
        };
        part(&self.pending, "a restart is pending for {}");
        part(&self.refused, "the last reload has refused the value of {}");
        part(
            &self.options,
            "the command line sets {}, which only pg_ctl restart repeats",
        );
        part(&self.replaced, "replaced on disk since the start: {}");
        if parts.is_empty() {
            FORGOTTEN.to_owned()
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
        if shmem::generation().is_none() || shared::lacks_worker() || self.not_seen.is_some() {
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
        format!(
            "the worker asks the server's program {when}, SELECT * FROM hugepage_preflight() at once"
        )
    }
}

/// An answer as the current user may see it, unless a standby of `primary` would refuse its own settings, `recovery`.
pub fn checked(
    answer: Option<Answer>,
    recovery: Option<RecoveryParameters>,
    primary: Option<&RecoveryParameters>,
) -> Option<Answer> {
    let refusal = primary
        .zip(recovery)
        .and_then(|(primary, own)| own.refusal(primary));
    match (answer, refusal) {
        (Some(Answer::Refuses(error)), _) => Some(Answer::Refuses(shown(error))),
        (_, Some(refusal)) => Some(Answer::Refuses(refusal)),
        (Some(Answer::Unknown(why)), None) => Some(Answer::Unknown(shown_reason(why))),
        (answer, None) => answer,
    }
}

/// A reason as the current user may see it, for what the server's program says in it.
fn shown_reason(why: String) -> String {
    match why.split_once(SAYS) {
        Some((own, _)) if !may_see() => {
            format!("{own}{SAYS}what is for those alone who may read pg_file_settings")
        }
        _ => why,
    }
}

/// Whether the current user may see what the server's program says. The worker and the postmaster write to the log alone.
fn may_see() -> bool {
    !guc::is_session() || guc::may_see_file_settings()
}

/// The server's error as the current user may see it: settings that are not loaded are only for those who may read `pg_file_settings`.
fn shown(error: String) -> String {
    if may_see() {
        return error;
    }
    let name = error
        .split_once("parameter \"")
        .and_then(|(_, rest)| Some(rest.split_once('"')?.0));
    let is_known =
        |name: &&str| CString::new(*name).is_ok_and(|name| guc::running(&name).is_some());
    match name.filter(is_known) {
        Some(name) => format!("the configuration files are refused for parameter \"{name}\""),
        None => "the configuration files are refused".to_owned(),
    }
}

/// The server's program and preloaded libraries that are no longer on disk as they were loaded: an update has replaced them, and a
/// start would run others. What can't be read counts as replaced.
fn replaced(started: pg_sys::TimestampTz) -> Vec<String> {
    let is_same = |known: &&Replaced| known.of.iter().all(|(path, seen)| at(path) == *seen);
    let known = REPLACED.with_borrow(|known| {
        let known = known.as_ref().filter(is_same);
        known.map(|known| known.files.clone())
    });
    known.unwrap_or_else(|| {
        let found = Replaced::now(started).unwrap_or_else(|error| Replaced {
            of: Vec::new(),
            files: vec![error],
        });
        let files = found.files.clone();
        REPLACED.set(Some(found));
        files
    })
}

fn at(path: &Path) -> Option<FileStamp> {
    stamp(path).ok().flatten()
}

impl Replaced {
    fn now(started: pg_sys::TimestampTz) -> Result<Self, String> {
        let local = server::local_paths()?;
        let mapped = maps::read(&ROOT, maps::SELF, |mapping| mapping.path.starts_with('/'))
            .map_err(|error| error.to_string())?;
        let is_mapped = |path: &Path| mapped.iter().any(|one| Path::new(&one.path) == path);
        let preloaded = guc::running(c"shared_preload_libraries").unwrap_or_default();
        let libraries = preloaded
            .split(',')
            .map(|name| name.trim().trim_matches('"'))
            .filter(|name| !name.is_empty());
        let mut found = Self {
            of: Vec::new(),
            files: Vec::new(),
        };
        let places = libraries.map(|name| library(name, &mapped));
        for path in places.chain([server::executable()]) {
            // A look at another place may wait.
            let Ok(place) = local.resolve(&path) else {
                continue;
            };
            let seen = at(&place.path);
            let is_new = seen.is_none_or(|seen| started != 0 && seen.changed_at() > started);
            if is_new || !is_mapped(&place.path) {
                found.files.push(format!("\"{}\"", path.display()));
            }
            found.of.push((place.path, seen));
        }
        Ok(found)
    }
}

/// The file of a preloaded library (dfmgr.c, `expand_dynamic_library_name`).
fn library(name: &str, mapped: &[maps::Mapping]) -> PathBuf {
    let directory = server::library_directory();
    let file = format!("{}.so", name.strip_suffix(".so").unwrap_or(name));
    let is_elsewhere = guc::running(c"dynamic_library_path").is_some_and(|path| path != "$libdir");
    let elsewhere = mapped.iter().map(|one| Path::new(&one.path));
    let elsewhere = elsewhere
        .filter(|path| is_elsewhere && path.ends_with(&file))
        .find(|_| !name.contains('/'));
    match file.strip_prefix("$libdir/") {
        Some(file) => directory.join(file),
        None => elsewhere.map_or_else(|| directory.join(file), Path::to_owned),
    }
}
