//! What the configuration on disk would ask for, known at the price of looking at a few files' time stamps.
//!
//! The server's own program is asked only if a file has changed since the postmaster read it, and once for each change:
//! the answer is kept in the backend as long as the files stay as they are.

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
/// Time stamps of files and processes are no finer than this.
const COARSE: Nanos = SECOND / 50;

/// Enough of a file to tell whether it is another one, or has been changed; `None` if it is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: Nanos,
    changed: Nanos,
}

/// What was found out, and from which files.
struct Known {
    sources: Vec<PathBuf>,
    stamps: Vec<Option<Stamp>>,
    /// `None`: nothing has changed since the postmaster read it.
    answer: Option<Answer>,
}

thread_local! {
    static KNOWN: RefCell<Option<Known>> = const { RefCell::new(None) };
}

/// What a start with the configuration on disk would ask for; `None` if that is what the running server asked for,
/// because nothing has changed since.
pub fn answer(root: &Root, notes: &mut Notes) -> Option<Answer> {
    let kept = KNOWN.with_borrow(|known| {
        let known = known.as_ref()?;
        (stamps(&known.sources) == known.stamps).then(|| known.answer.clone())
    });
    if let Some(answer) = kept {
        return answer;
    }
    let (on_disk, sources, stamps) = settled(root, notes);
    let answer = (!unchanged_since_start(root, &stamps)).then(|| preflight::ask(&on_disk, Overrides::default()));
    // A file that was changed this very moment may change again without a new time stamp.
    let newest = stamps.iter().flatten().map(|stamp| stamp.changed.max(stamp.modified)).max();
    let known = Known { sources, stamps, answer: answer.clone() };
    KNOWN.set((newest.unwrap_or(0) + COARSE < now()).then_some(known));
    answer
}

/// The configuration, read after the stamps of all its files were taken.
fn settled(root: &Root, notes: &mut Notes) -> (OnDisk, Vec<PathBuf>, Vec<Option<Stamp>>) {
    let mut on_disk = OnDisk::read(root, notes);
    loop {
        let mut sources = on_disk.sources().to_vec();
        // A new minor release counts as well, and so do libraries to preload.
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

/// Whether all files are there and older than the postmaster. What can't be told counts as changed: then the program
/// is asked once more than needed, and the answer is right.
fn unchanged_since_start(root: &Root, stamps: &[Option<Stamp>]) -> bool {
    let now = now();
    let Some(age) = process::age(root, server::postmaster_pid()).ok().flatten() else { return false };
    // The clock may have been set since, so the start has two times: the one by today's clock, and the one it was then.
    let by_now = now - Nanos::try_from(age.as_nanos()).unwrap_or(Nanos::MAX) - COARSE;
    let then = Nanos::from(server::postmaster_start()) * 1000 + POSTGRES_EPOCH;
    stamps.iter().all(|stamp| stamp.is_some_and(|stamp| stamp.changed < by_now.min(then)))
}

/// 2000-01-01, from which PostgreSQL counts.
const POSTGRES_EPOCH: Nanos = 946_684_800 * SECOND;

fn now() -> Nanos {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Nanos::try_from(elapsed.as_nanos()).unwrap_or(Nanos::MAX)
}
