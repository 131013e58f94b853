//! The sentences on a start with the configuration on disk, if it differs from the running one.

use crate::advice::message::product::ProductTerms;
use crate::advice::message::status_text::StatusText;
use crate::assessment::outlook_notes::UNCHECKED_RINGS;
use crate::assessment::{Outlook, Status};
use crate::model::{Cause, Pending, PoolFact, PoolState};

/// The state; `None` if the outlook is that of the running configuration.
pub fn message(status: &Status) -> Option<String> {
    if !status.of_pending {
        return None;
    }
    if let Pending::Refused(error) = &status.facts.pending {
        return Some(format!("The next start with the configuration on disk would fail: {}.", first_line(error)));
    }
    let text = StatusText(status);
    let shortfall = text.shortfall();
    Some(match status.outlook {
        Outlook::Fails if status.forecast.cause == Some(Cause::ShmLimit) => {
            format!("The next start with the configuration on disk would fail: {shortfall}.")
        }
        Outlook::Fails => format!(
            "The next start with the configuration on disk would fail: {}, and {shortfall}.",
            ProductTerms::current(&status.facts.requested_next())
        ),
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
    })
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
