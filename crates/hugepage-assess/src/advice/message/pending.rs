//! The sentences on a start with the configuration on disk, if it differs from the running one, and on why an outlook is unknown.

use hugepage_facts::Cause;

use crate::advice::message::ProductTerms;
use crate::advice::message::status_text::{OF_RINGS, StatusText, obstacle};
use crate::assessment::{Forecast, Outlook, Status};
use crate::model::{CrashRecovery, Pending, PoolFact, PoolState};

/// What only the running server knows.
const OF_START: &str = "what a restart after a crash gets depends on the settings that the server was started with, and its \
                        files have changed since";

/// Why the next start would fail.
pub fn fails(status: &Status) -> String {
    let on_disk = if status.of_pending {
        " with the configuration on disk"
    } else {
        ""
    };
    let shortfall = StatusText::new(status).shortfall();
    let why = match &status.facts.pending {
        Pending::Refused(error) => first_line(error).to_owned(),
        _ if status.forecast.cause == Some(Cause::ShmLimit) => shortfall,
        _ if status.forecast.obstacle().is_some() => shortfall,
        _ => format!(
            "{}, and {shortfall}",
            ProductTerms::current(&status.facts.requested_next())
        ),
    };
    format!("The next start{on_disk} would fail: {why}.")
}

/// The state, where the next start has other settings than the running server.
pub fn message(status: &Status) -> String {
    let text = StatusText::new(status);
    let shortfall = text.shortfall();
    match status.forecast.outlook {
        Outlook::Fails => fails(status),
        Outlook::Unknown if status.facts.pending == Pending::Unknown => {
            "The demand of the configuration on disk could not be determined.".to_owned()
        }
        Outlook::Unknown => {
            let what = match status.forecast.obstacle() {
                Some(_) => "succeeds",
                None => "gets huge pages",
            };
            format!(
                "It is unknown whether a restart with the configuration on disk {what}: {shortfall}."
            )
        }
        outlook => {
            let lost = if outlook == Outlook::Mixed {
                "not get all of"
            } else {
                "lose"
            };
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
    ["LOG:  ", "ERROR:  ", "FATAL:  "]
        .iter()
        .find_map(|level| line.strip_prefix(level))
        .unwrap_or(line)
}

/// PostgreSQL's refusal to start without huge pages, by the kernel's code (sysv_shmem.c); `None` with shared_memory_type = sysv.
pub fn refusal(pool_state: &PoolState, sysv: bool) -> Option<&'static str> {
    match (&pool_state.pool, sysv) {
        (_, true) => None,
        // mmap(2) knows no such page size.
        (PoolFact::Unsupported(..), _) => {
            Some("could not map anonymous shared memory: Invalid argument")
        }
        _ => Some("could not map anonymous shared memory: Cannot allocate memory"),
    }
}

/// Why the outcome of `start` is unknown.
fn note(forecast: &Forecast, start: &str) -> Option<String> {
    match (forecast.outlook, forecast.obstacle()) {
        (Outlook::Unknown, Some(danger)) => Some(format!(
            "whether {start} succeeds is unknown: {}",
            obstacle(danger)
        )),
        _ => forecast.note_on_surplus(start),
    }
}

impl Status {
    /// Why an outlook is unknown, as far as no other note says it; for the notes of a row.
    pub fn notes_on_outlook(&self) -> impl Iterator<Item = String> {
        let recovery = &self.facts.crash_recovery;
        let crash = self.crash_outlook().and_then(|_| match recovery {
            CrashRecovery::Unknown(why) => Some(why.clone()),
            CrashRecovery::Refused(_) => recovery
                .error()
                .map(|error| format!("a restart after a crash would fail: {error}")),
            CrashRecovery::Possible if self.crash_by_start => Some(OF_START.to_owned()),
            CrashRecovery::Possible => note(&self.crash, "a restart after a crash"),
        });
        let depends_on_rings = self.forecast.depends_on_rings || self.crash.depends_on_rings;
        [
            note(&self.forecast, "a restart"),
            crash,
            depends_on_rings.then(|| OF_RINGS.to_owned()),
        ]
        .into_iter()
        .flatten()
    }
}
