//! Whether what lies at the paths of the configuration is what this process has loaded.
//!
//! Times alone do not show it: an old file may have come in the place of another. So the first look keeps what it finds, as far as
//! nothing in it is younger than the load, and later looks compare. The postmaster of a preloaded library looks when it starts.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use hugepage_kernel::host::local_path::Resolved;
use pgrx::pg_sys;
use rustix::time::{ClockId, clock_getres};

use crate::configuration_files::{ConfigurationFile, FileStamp, stamp};
use crate::{server, shmem};

/// The most microseconds from the begin of a postmaster to its load, and from that to `PgStartTime`.
const START: [i64; 2] = [5_000_000, 60_000_000];

/// Files that the server makes or renames in its data directory while it runs: when it rotates its log, and when it recovers from a
/// base backup.
const OWN_FILES: [&str; 3] = ["current_logfiles", "backup_label.old", "tablespace_map.old"];

thread_local! {
    /// What was there at the first look, at a path of the configuration and where that led; what the postmaster kept is inherited.
    static KEPT: RefCell<HashMap<[PathBuf; 2], Option<FileStamp>>> = RefCell::default();
}

/// The last load of this process.
pub struct Load {
    reloaded: pg_sys::TimestampTz,
    /// The start of the server; 0 while it starts.
    pub started: pg_sys::TimestampTz,
    is_start: bool,
    /// Changes until then were certainly loaded.
    seen_until: pg_sys::TimestampTz,
    /// Whether the clock was set back since, which is read once for all files.
    is_set_back: OnceCell<bool>,
}

impl Load {
    /// The load at `reloaded` of a server that has started at `started`.
    pub fn new(reloaded: pg_sys::TimestampTz, started: pg_sys::TimestampTz) -> Self {
        let is_start = started == 0 || (reloaded..reloaded + START[1]).contains(&started);
        // Files are written right before a start, not while it reads them.
        let seen_until = reloaded - if is_start { 0 } else { file_clock() };
        Self {
            reloaded,
            started,
            is_start,
            seen_until,
            is_set_back: OnceCell::new(),
        }
    }

    /// Why the file, of which `seen` was seen, may be another than the one that was loaded, as text for notes; `None` if it is that.
    pub fn doubt(&self, file: &ConfigurationFile, seen: Option<&FileStamp>) -> Option<String> {
        let name = file.name.display();
        let at = seen.map(FileStamp::changed_at);
        let age = if seen.is_none() && file.is_needed {
            "is gone since"
        } else if at > Some(self.reloaded) {
            "is newer than"
        } else if at > Some(self.seen_until) {
            "is as new as"
        } else {
            let why = self.doubt_by_look(file, seen)?;
            return Some(format!(
                "\"{name}\" may be another one than was loaded: {why}"
            ));
        };
        Some(format!(
            "\"{name}\" {age} the last reload: SELECT pg_reload_conf()"
        ))
    }

    /// The same of what is older than the load.
    fn doubt_by_look(&self, file: &ConfigurationFile, seen: Option<&FileStamp>) -> Option<String> {
        let place = file.place.as_ref().ok()?;
        let key = [file.name.clone(), place.path.clone()];
        match KEPT.with_borrow(|kept| kept.get(&key).copied()) {
            Some(kept) if kept.as_ref() == seen => None,
            // What has changed since the start is known as such.
            Some(_) if seen.is_some_and(|seen| seen.changed_at() > self.started) => None,
            Some(_) => Some("it is not what was there".to_owned()),
            None => {
                let why = self.unproven(place, seen.is_some());
                if why.is_none() {
                    KEPT.with_borrow_mut(|kept| kept.insert(key, seen.copied()));
                }
                why
            }
        }
    }

    /// Why a first look does not show that the file was loaded; `None` if it does.
    fn unproven(&self, place: &Resolved, is_there: bool) -> Option<String> {
        if self.started == 0 {
            return None;
        }
        if *self.is_set_back.get_or_init(|| self.was_ahead()) {
            return Some("the clock was ahead".to_owned());
        }
        if place.is_mount_point {
            return Some("it is mounted there, and nothing shows since when".to_owned());
        }
        let mut is_there = is_there;
        for directory in place.path.ancestors().skip(1) {
            let Ok(Some(seen)) = stamp(directory) else {
                continue;
            };
            let is_newer = seen.changed_at() > self.seen_until;
            let has_other_names = !is_there && !self.is_own_change(directory, &seen);
            if is_newer && (has_other_names || seen.is_renamed()) {
                let directory = directory.display();
                return Some(format!("the directory \"{directory}\" has changed since"));
            }
            is_there = true;
        }
        None
    }

    /// Whether the server itself made the last change in a directory: at its start, or of one of [`OWN_FILES`].
    fn is_own_change(&self, directory: &Path, seen: &FileStamp) -> bool {
        let stamps = OWN_FILES.map(|name| stamp(&directory.join(name)).ok().flatten());
        let changes = stamps.iter().flatten().map(FileStamp::changed_at);
        let last = changes.max().map_or(0, |change| change + file_clock());
        seen.changed_at() <= last.max(self.started) && seen.is_at(&server::data_directory())
    }

    /// Whether the clock was ahead at the load of what it is now: then a change after it may have an earlier time.
    fn was_ahead(&self) -> bool {
        let now = shmem::now();
        let begun = || server::postmaster_start(now).filter(|_| self.is_start);
        self.reloaded > now || begun().is_some_and(|begun| self.reloaded - begun > START[0])
    }
}

/// Microseconds by which the time of a change may be earlier than that of a reload before it: the first is that of a coarse clock, which
/// is up to two ticks late (`current_time()`, fs/inode.c), and a reload has its own a moment after it has read the files (guc-file.l).
fn file_clock() -> i64 {
    clock_getres(ClockId::RealtimeCoarse).tv_nsec * 3 / 1000 + 1000
}
