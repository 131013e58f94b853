//! The sentences on a start with the configuration on disk, if it differs from the running one, and on why an outlook is unknown.

use crate::advice::message::product::ProductTerms;
use crate::advice::message::status_text::StatusText;
use crate::assessment::{Outlook, Status};
use crate::model::{Cause, CrashRecovery, Pending, PoolFact, PoolState};

/// What only the running server knows.
const OF_START: &str = "what a restart after a crash gets depends on the settings that the server was started with, and its \
                        files have changed since";

/// Why it is unknown what a server with io_uring gets: a clause.
pub(super) const OF_RINGS: &str =
    "with io_method = io_uring old rings may keep their huge pages until the server stops";

/// What no forecast of a start with io_uring covers.
pub const UNCHECKED_RINGS: &str = "whether the kernel refuses the rings of io_method = io_uring (RLIMIT_MEMLOCK, RLIMIT_NOFILE, \
                                   kernel.io_uring_disabled) is not checked";

/// Why the next start would fail.
pub fn fails(status: &Status) -> String {
    let on_disk = if status.of_pending { " with the configuration on disk" } else { "" };
    let shortfall = StatusText(status).shortfall();
    let why = match &status.facts.pending {
        Pending::Refused(error) => first_line(error).to_owned(),
        _ if status.forecast.cause == Some(Cause::ShmLimit) => shortfall,
        _ => format!("{}, and {shortfall}", ProductTerms::current(&status.facts.requested_next())),
    };
    format!("The next start{on_disk} would fail: {why}.")
}

/// The state, where the next start has other settings than the running server.
pub fn message(status: &Status) -> String {
    let text = StatusText(status);
    let shortfall = text.shortfall();
    match status.outlook {
        Outlook::Fails => fails(status),
        Outlook::Unknown if status.facts.pending == Pending::Unknown => {
            "The demand of the configuration on disk could not be determined.".to_owned()
        }
        Outlook::Unknown if status.facts.pending.asks_for_rings() && status.forecast.note_on_surplus("").is_none() => {
            format!("It is unknown whether a restart with the configuration on disk succeeds: {UNCHECKED_RINGS}.")
        }
        Outlook::Unknown => {
            format!("It is unknown whether a restart with the configuration on disk gets huge pages: {shortfall}.")
        }
        outlook => {
            let lost = if outlook == Outlook::Mixed { "not get all of" } else { "lose" };
            let memory = text.memory();
            format!(
                "{memory} is in huge pages, but a restart with the configuration on disk would {lost} them: {shortfall}."
            )
        }
    }
}

/// The first line of the server's error text, without its level.
fn first_line(error: &str) -> &str {
    let line = error.lines().next().unwrap_or_default();
    ["LOG:  ", "ERROR:  ", "FATAL:  "].iter().find_map(|level| line.strip_prefix(level)).unwrap_or(line)
}

/// PostgreSQL's refusal to start without huge pages, by the kernel's code (sysv_shmem.c); `None` with shared_memory_type = sysv.
pub fn refusal(pool_state: &PoolState, sysv: bool) -> Option<&'static str> {
    match (&pool_state.pool, sysv) {
        (_, true) => None,
        // mmap(2) knows no such page size.
        (PoolFact::Unsupported(..), _) => Some("could not map anonymous shared memory: Invalid argument"),
        _ => Some("could not map anonymous shared memory: Cannot allocate memory"),
    }
}

impl Status {
    /// Why an outlook is unknown, as far as no other note says it; for the notes of a row.
    pub fn notes_on_outlook(&self) -> impl Iterator<Item = String> {
        let restart = match self.facts.rings_may_hold_pages_of(&self.forecast) {
            true => Some(format!("whether a restart gets huge pages is unknown: {OF_RINGS}")),
            false => self.forecast.note_on_surplus("a restart"),
        };
        let recovery = &self.facts.crash_recovery;
        let crash = self.crash_outlook().and_then(|_| match recovery {
            CrashRecovery::Unknown(why) => Some(why.clone()),
            CrashRecovery::Refused(_) => {
                recovery.error().map(|error| format!("a restart after a crash would fail: {error}"))
            }
            CrashRecovery::Possible if self.crash_by_start => Some(OF_START.to_owned()),
            CrashRecovery::Possible if self.facts.may_keep_rings(&self.crash) => {
                Some(format!("what a restart after a crash gets is unknown: {OF_RINGS}"))
            }
            CrashRecovery::Possible => self.crash.note_on_surplus("a restart after a crash"),
        });
        [restart, crash, self.facts.pending.asks_for_rings().then(|| UNCHECKED_RINGS.to_owned())].into_iter().flatten()
    }
}
