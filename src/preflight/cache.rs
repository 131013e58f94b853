//! The answer of the server's program about the configuration on disk, kept until a file changes.
//!
//! The program runs only if a file has changed since the postmaster read it, and once for each change. The backend keeps
//! the answer with the time stamps of the files, so that a repeated call costs only a stat(2) for each.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hugepage_core::Notes;
use hugepage_core::read::pg_control::RecoveryParameters;
use hugepage_core::read::{Root, process};

use crate::preflight::on_disk::OnDisk;
use crate::preflight::{self, Answer, Overrides};
use crate::server;

/// Nanoseconds since 1970.
type Nanos = i128;

const SECOND: Nanos = 1_000_000_000;
/// Two events at most this far apart may have the same time stamp.
const TIMESTAMP_GRANULARITY: Nanos = SECOND / 50;

/// How long an answer is kept while no file changes.
const LIFETIME: Duration = Duration::from_secs(600);
/// The same for an error, whose reason may lie elsewhere, as in a library or in a locale.
const REFUSAL_LIFETIME: Duration = Duration::from_secs(10);

/// Identifies a file and its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: Nanos,
    changed: Nanos,
}

/// A kept answer, and what it depends on.
struct CachedAnswer {
    sources: Vec<PathBuf>,
    /// `None` for a file that does not exist.
    stamps: Vec<Option<Stamp>>,
    /// What a standby compares with its primary, which may change while no file does.
    recovery: RecoveryParameters,
    /// `None`: nothing has changed since the postmaster read it.
    answer: Option<Answer>,
    /// A start can depend on more than these files, so the program is asked again after a while.
    expires: Instant,
}

thread_local! {
    static CACHE: RefCell<Option<CachedAnswer>> = const { RefCell::new(None) };
}

/// The demand of a start with the configuration on disk; `None` if no file has changed since the postmaster read it. `primary`:
/// what a standby compares its settings with.
pub fn answer(root: &Root, primary: Option<&RecoveryParameters>, notes: &mut Notes) -> Option<Answer> {
    let kept = CACHE.with_borrow(|cached| {
        let cached = cached.as_ref()?;
        let is_fresh = Instant::now() < cached.expires && stamps(&cached.sources).eq(cached.stamps.iter().copied());
        is_fresh.then(|| (cached.recovery, cached.answer.clone()))
    });
    let (recovery, answer) = kept.unwrap_or_else(|| {
        CACHE.set(None);
        ask(root, notes)
    });
    match answer {
        refused @ Some(Answer::Refuses(_)) => refused,
        answer => primary.and_then(|primary| recovery.refusal(primary)).map(Answer::Refuses).or(answer),
    }
}

/// The answer anew, and kept if it will hold for a while.
fn ask(root: &Root, notes: &mut Notes) -> (RecoveryParameters, Option<Answer>) {
    let (on_disk, sources, stamps) = read_unchanged(root, notes);
    let recovery = on_disk.recovery_parameters(None);
    let is_unchanged =
        unchanged_since_start(root, &stamps) && on_disk.is_as_running() && on_disk.files_alone().is_none();
    let answer = (!is_unchanged).then(|| preflight::ask(&on_disk, Overrides::default()));
    // A file that has just changed may change again without a new time stamp, so its answer is not kept.
    let newest = stamps.iter().flatten().map(|stamp| stamp.changed.max(stamp.modified)).max();
    let is_settled = newest.unwrap_or(0) + TIMESTAMP_GRANULARITY < now();
    let lifetime = match answer {
        Some(Answer::Unknown(_)) => None,
        Some(Answer::Refuses(_)) => Some(REFUSAL_LIFETIME),
        _ => Some(LIFETIME),
    };
    if let Some(lifetime) = lifetime.filter(|_| is_settled) {
        let expires = Instant::now() + lifetime;
        CACHE.set(Some(CachedAnswer { sources, stamps, recovery, answer: answer.clone(), expires }));
    }
    (recovery, answer)
}

/// The configuration, and time stamps of its files that were taken before it was read.
fn read_unchanged(root: &Root, notes: &mut Notes) -> (OnDisk, Vec<PathBuf>, Vec<Option<Stamp>>) {
    let mut on_disk = OnDisk::read(root, notes);
    loop {
        let mut sources = on_disk.sources().to_vec();
        sources.extend(sources.iter().flat_map(|file| links(file)).collect::<Vec<_>>());
        // A new minor release changes the answer too, and so do libraries to preload.
        sources.extend([server::executable(), server::library_directory()]);
        let stamps = stamps(&sources).collect();
        let again = OnDisk::read(root, notes);
        if again.sources() == on_disk.sources() {
            return (again, sources, stamps);
        }
        on_disk = again;
        pgrx::check_for_interrupts!();
    }
}

/// Of a symbolic link both what it leads to and the link itself, which may have been switched to an older file.
fn stamps(sources: &[PathBuf]) -> impl Iterator<Item = Option<Stamp>> {
    let stamp = |file: Metadata| {
        let nanos = |seconds: i64, nanos: i64| Nanos::from(seconds) * SECOND + Nanos::from(nanos);
        Stamp {
            device: file.dev(),
            inode: file.ino(),
            size: file.size(),
            modified: nanos(file.mtime(), file.mtime_nsec()),
            changed: nanos(file.ctime(), file.ctime_nsec()),
        }
    };
    let both = |path: &PathBuf| {
        let itself = fs::symlink_metadata(path).ok();
        let target = itself.as_ref().filter(|file| file.is_symlink()).map(|_| fs::metadata(path).ok());
        std::iter::once(itself).chain(target)
    };
    sources.iter().flat_map(both).map(move |file| file.map(stamp))
}

/// The symbolic links on the way to `file`, in the order in which the kernel follows them.
fn links(file: &Path) -> Vec<PathBuf> {
    /// As many as the kernel follows (path_resolution(7)).
    const MAX_LINKS: usize = 40;
    let mut found = Vec::new();
    let mut way = PathBuf::new();
    let mut rest: Vec<OsString> = file.iter().rev().map(OsStr::to_owned).collect();
    while let Some(name) = rest.pop() {
        let next = way.join(name);
        match fs::read_link(&next) {
            Ok(target) if found.len() < MAX_LINKS => {
                rest.extend(target.iter().rev().map(OsStr::to_owned));
                found.push(next);
            }
            _ => way = next,
        }
    }
    found
}

/// Whether all files exist and are older than the postmaster. If unknown they count as changed, which costs at most one
/// run of the program.
fn unchanged_since_start(root: &Root, stamps: &[Option<Stamp>]) -> bool {
    let now = now();
    let Some(age) = process::age(root, server::postmaster_pid()).ok().flatten() else { return false };
    // The clock may have been set since the start, so the start has two times: by the clock now, and by the clock then.
    let by_now = now - Nanos::try_from(age.as_nanos()).unwrap_or(Nanos::MAX) - TIMESTAMP_GRANULARITY;
    let then = Nanos::from(server::postmaster_start()) * 1000 + POSTGRES_EPOCH;
    stamps.iter().all(|stamp| stamp.is_some_and(|stamp| stamp.changed < by_now.min(then)))
}

/// 2000-01-01, the epoch of PostgreSQL's timestamps.
const POSTGRES_EPOCH: Nanos = 946_684_800 * SECOND;

fn now() -> Nanos {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Nanos::try_from(elapsed.as_nanos()).unwrap_or(Nanos::MAX)
}
