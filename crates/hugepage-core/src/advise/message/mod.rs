//! One sentence on what is so, one on what to do, for the finding that a verdict speaks of.

mod hint;
pub mod pending;
pub(super) mod phrases;
pub mod terms;

use crate::advise::message::phrases::Words;
use crate::assess::{Finding, Status};

/// What is so.
pub fn message(status: &Status) -> String {
    let words = Words(status);
    match status.verdict().1 {
        Finding::AsAsked => format!("{} is in {}, and a restart keeps them.", words.memory(), words.huge_pages()),
        Finding::CgroupBelowSegment => format!(
            "{} is in huge pages, but a cgroup allows only {} of them: what touches more is killed by SIGBUS, or \
             fails to read as if its files were damaged.",
            words.memory(),
            words.allowed(),
        ),
        Finding::RestartFails | Finding::RestartLoses | Finding::OutlookUnknown if status.of_pending => {
            pending::message(status).unwrap_or_default()
        }
        Finding::RestartFails => {
            format!("The next start would fail, because {} and {}.", words.asked(), words.what_a_restart_lacks())
        }
        Finding::RestartLoses => format!(
            "{} is in huge pages, but {} would lose {}: {}.",
            words.memory(),
            words.terms().restart,
            words.what_would_go(),
            words.what_a_restart_lacks()
        ),
        Finding::Regressed(loss) => words.regressed(loss),
        Finding::BasePages(cause) => format!("{} is in {}{}.", words.memory(), words.base_pages(), words.why(*cause)),
        Finding::TransparentHugePages => format!(
            "{} is in transparent huge pages, which nothing reserves: they can be split and swapped, and a restart \
             may not get them.",
            words.memory()
        ),
        Finding::PageTables => words.page_tables(),
        Finding::PoolWasted { needed } => words.waste(*needed),
        Finding::LandingUnknown => "Which pages shared memory is in could not be found out; notes say why.".to_owned(),
        Finding::OutlookUnknown => {
            format!("{} is in {}, but {}.", words.memory(), words.pages_now(), words.what_is_unknown())
        }
    }
}

/// What to do; `None` where nothing is to be done.
pub fn hint(status: &Status) -> Option<String> {
    let words = Words(status);
    match status.verdict().1 {
        Finding::AsAsked | Finding::LandingUnknown => None,
        Finding::CgroupBelowSegment => words.raise_fault_limit(),
        Finding::RestartFails | Finding::RestartLoses | Finding::OutlookUnknown => match status.of_pending {
            true => Some(pending::hint(status)),
            false => words.keep(),
        },
        Finding::Regressed(_) => status.cause.map_or_else(|| words.keep(), |cause| words.mend(cause)),
        Finding::BasePages(cause) => words.mend(*cause),
        Finding::TransparentHugePages => words.mend(status.cause?),
        Finding::PageTables => match status.cause {
            Some(cause) => words.mend(cause),
            None => Some("Reduce the number of processes, for example with a connection pooler.".to_owned()),
        },
        Finding::PoolWasted { needed } => {
            Some(format!("If nothing else is to start that uses them, run \"{}\".", words.set_pool(*needed)?))
        }
    }
}
