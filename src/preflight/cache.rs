//! The answer of the server's program about the configuration on disk, kept until a file changes.
//!
//! The program runs only if a file has changed since the postmaster read it, and once for each change. The backend keeps
//! the answer with the time stamps of the files, so that a repeated call costs only a stat(2) for each.

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use hugepage_core::Notes;
use hugepage_core::read::{Root, process};

use crate::preflight::on_disk::OnDisk;
use crate::preflight::{self, Answer, Overrides};
use crate::server;

/// Nanoseconds since 1970.
type Nanos = i128;

const SECOND: Nanos = 1_000_000_000;
/// Two events at most this far apart may have the same time stamp.
const TIMESTAMP_GRANULARITY: Nanos = SECOND / 50;

/// Identifies a file and its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: Nanos,
    changed: Nanos,
}

/// A kept answer, and the files that it depends on.
struct CachedAnswer {
    sources: Vec<PathBuf>,
    /// `None` for a file that does not exist.
    stamps: Vec<Option<Stamp>>,
    /// `None`: nothing has changed since the postmaster read it.
    answer: Option<Answer>,
}

thread_local! {
    static CACHE: RefCell<Option<CachedAnswer>> = const { RefCell::new(None) };
}

/// The demand of a start with the configuration on disk; `None` if no file has changed since the postmaster read it.
pub fn answer(root: &Root, notes: &mut Notes) -> Option<Answer> {
    let kept = CACHE.with_borrow(|cached| {
        let cached = cached.as_ref()?;
        (stamps(&cached.sources) == cached.stamps).then(|| cached.answer.clone())
    });
    if let Some(answer) = kept {
        return answer;
    }
    let (on_disk, sources, stamps) = read_unchanged(root, notes);
    let answer = (!unchanged_since_start(root, &stamps)).then(|| preflight::ask(&on_disk, Overrides::default()));
    // A file that has just changed may change again without a new time stamp, so its answer is not kept.
    let newest = stamps.iter().flatten().map(|stamp| stamp.changed.max(stamp.modified)).max();
    let cached = CachedAnswer { sources, stamps, answer: answer.clone() };
    CACHE.set((newest.unwrap_or(0) + TIMESTAMP_GRANULARITY < now()).then_some(cached));
    answer
}

/// The configuration, and time stamps of its files that were taken before it was read.
fn read_unchanged(root: &Root, notes: &mut Notes) -> (OnDisk, Vec<PathBuf>, Vec<Option<Stamp>>) {
    let mut on_disk = OnDisk::read(root, notes);
    loop {
        let mut sources = on_disk.sources().to_vec();
        // A new minor release changes the answer too, and so do libraries to preload.
        sources.extend([server::executable(), server::library_directory()]);
        let stamps = stamps(&sources);
        let again = OnDisk::read(root, notes);
        if again.sources() == on_disk.sources() {
            return (again, sources, stamps);
        }
        on_disk = again;
        pgrx::check_for_interrupts!();
    }
}

fn stamps(sources: &[PathBuf]) -> Vec<Option<Stamp>> {
    let stamp = |path: &PathBuf| {
        let file = fs::metadata(path).ok()?;
        let nanos = |seconds: i64, nanos: i64| Nanos::from(seconds) * SECOND + Nanos::from(nanos);
        Some(Stamp {
            device: file.dev(),
            inode: file.ino(),
            size: file.size(),
            modified: nanos(file.mtime(), file.mtime_nsec()),
            changed: nanos(file.ctime(), file.ctime_nsec()),
        })
    };
    sources.iter().map(stamp).collect()
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
