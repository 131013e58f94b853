//! One sentence on the state of a server and one on what to do, for its most severe finding.

mod hint;
pub mod pending;
pub mod product;
mod reason;
mod shortfall;
pub(super) mod status_text;

pub use shortfall::Shortfall;
pub use status_text::is_of_pool;

use crate::advice::message::status_text::StatusText;
use crate::advice::plan::Plan;
use crate::advice::pool;
use crate::assessment::{Finding, Outlook, Severity, Status};
use crate::model::Cause;

/// One finding with all that is said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingText {
    /// The name, one of [`Finding::NAMES`].
    pub name: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The state.
    pub message: String,
    /// What to do; `None` if nothing that is known here helps.
    pub hint: Option<String>,
}

/// All findings, the most severe first; none if all is as requested.
pub fn findings(status: &Status) -> Vec<FindingText> {
    let text = |(severity, finding): &(Severity, Finding)| FindingText {
        name: finding.name(),
        severity: *severity,
        message: of_finding(status, finding),
        hint: hint_of_finding(status, finding),
    };
    status.findings.iter().map(text).collect()
}

/// The state, by the most severe finding.
pub fn message(status: &Status) -> String {
    of_finding(status, status.verdict().1)
}

/// The state, by `finding`: a table with a sentence for each.
pub fn of_finding(status: &Status, finding: &Finding) -> String {
    let text = StatusText(status);
    let (memory, pages) = (text.memory(), text.current_pages());
    match finding {
        Finding::AsRequested if status.facts.requested.is_automatic_asm() => {
            format!("{memory} is in files of /dev/shm, the default of ASM, which huge pages would not improve.")
        }
        Finding::AsRequested => format!("{memory} is in {}, and a restart keeps them.", text.huge_pages()),
        Finding::CgroupBelowSegment | Finding::SharedLimit => {
            status.excess_of(finding).map(|excess| text.exceeds(&excess)).unwrap_or_default()
        }
        Finding::NodeLimit => format!("{memory} is in {pages}{}.", text.reason(Cause::NodeLimit)),
        Finding::OutlookUnknown if status.outlook != Outlook::Unknown => format!(
            "{memory} is in huge pages, but whether a crash of one process keeps them is unknown: {}.",
            text.crash_shortfall()
        ),
        Finding::CrashLoses => {
            let what = match status.crash.outlook {
                Outlook::Fails => "the restart after a crash of one process would fail",
                _ => "a crash of one process would lose them",
            };
            format!("{memory} is in huge pages, but {what}: {}.", text.crash_shortfall())
        }
        Finding::RestartFails | Finding::RestartLoses | Finding::OutlookUnknown if status.of_pending => {
            pending::message(status).unwrap_or_default()
        }
        Finding::RestartFails if status.forecast.cause == Some(Cause::ShmLimit) => {
            format!("The next start would fail: {}.", text.shortfall())
        }
        Finding::RestartFails => format!("The next start would fail: {}, and {}.", text.setting(), text.shortfall()),
        Finding::RestartLoses => {
            let (restart, them) = (text.restart(), text.lost_pages());
            format!("{memory} is in huge pages, but {restart} would lose {them}: {}.", text.shortfall())
        }
        Finding::Regressed(loss) => text.regressed(loss),
        Finding::BasePages(cause) => format!("{memory} is in {}{}.", text.base_pages(), text.reason(*cause)),
        Finding::TransparentHugePages => format!(
            "{memory} is in transparent huge pages, which are not reserved: they can be split and swapped, and a restart may \
             not get them."
        ),
        Finding::PageTables => text.page_tables(),
        Finding::PoolWasted { needed } => pool::waste(status, *needed),
        Finding::HostMemoryUnknown => format!(
            "{memory} is in {pages}, but the page tables and the memory of the host are unknown: lxcfs shows those of a container."
        ),
        Finding::LimitHit { path, count } => format!(
            "{memory} is in {pages}, but a limit has refused huge pages to processes of its control group ({path}: {}{count}).",
            if path.ends_with("events") { "max " } else { "" }
        ),
        Finding::BootLoses => text.at_boot(),
        Finding::LandingUnknown => "The pages of shared memory could not be determined.".to_owned(),
        Finding::OutlookUnknown => format!("{memory} is in {pages}, but {}.", text.uncertainty()),
    }
}

/// What to do; `None` if nothing needs to be done, or nothing that is known here would make it better.
pub fn hint(status: &Status) -> Option<String> {
    hint_of_finding(status, status.verdict().1)
}

/// What to do about `finding`, as of [`hint`].
pub fn hint_of_finding(status: &Status, finding: &Finding) -> Option<String> {
    match Plan::of_finding(status, finding) {
        Some(plan) => Some(plan.sentence(status, finding)),
        None => StatusText(status).without_plan(finding),
    }
}
