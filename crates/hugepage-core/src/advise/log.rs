//! What goes into a server's log: a block at every allocation of shared memory, in the spirit of Oracle's "Large
//! Pages Information", and a word when a restart would lose what there is. Messages follow PostgreSQL's style.

use crate::Bytes;
use crate::advise::restart;
use crate::advise::words::Words;
use crate::assess::{HugePages, Landing, Outlook, Status, Threat};
use crate::history::Lost;

/// One message of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Whether it tells of something that is not as asked.
    pub is_bad: bool,
    /// What is so, lower case and without a period.
    pub message: String,
    /// The figures, in sentences.
    pub detail: Option<String>,
    /// What to do, a sentence.
    pub hint: Option<String>,
}

/// Said when shared memory has been allocated; `lost` is what a regression lost against the start before, `notes` what
/// could not be read.
pub fn allocated(status: &Status, lost: Option<&Lost>, notes: &[String]) -> Message {
    let words = Words(status);
    let landing = status.facts.landing();
    let as_asked = landing == Landing::Hugetlb || status.facts.asked.huge_pages == HugePages::Off;
    let message = match (lost, landing) {
        (Some(lost), _) => format!("shared memory has lost what it had: it {}", lost.what),
        (None, Landing::Hugetlb) => format!("shared memory landed in {}", words.huge_pages()),
        (None, Landing::Unknown) => "where shared memory landed could not be found out".to_owned(),
        (None, _) if as_asked => format!("shared memory landed in {}, as huge_pages = off asks", words.pages_now()),
        (None, _) => "shared memory did not land in huge pages".to_owned(),
    };
    let hint = match (status.cause, landing) {
        _ if as_asked && lost.is_none() => None,
        (Some(cause), _) => words.mend(cause),
        (None, _) if !status.threats().is_empty() => words.keep(),
        (None, _) => None,
    };
    let notes = notes.iter().map(|note| format!("Note: {note}."));
    let detail: Vec<_> = std::iter::once(figures(status)).chain(notes).collect();
    Message { is_bad: !as_asked || lost.is_some(), message, detail: Some(detail.join("\n")), hint }
}

/// Said once when a threat comes up while the server runs.
pub fn threatened(status: &Status, threat: Threat) -> Message {
    let words = Words(status);
    let (message, detail) = match threat {
        Threat::CgroupLimit => (
            "a cgroup allows fewer huge pages than shared memory has",
            format!("What touches more than {} of them is killed by SIGBUS, or fails to read.", words.allowed()),
        ),
        // A restart after a crash keeps the running configuration.
        Threat::RestartFails if status.of_pending => {
            ("the next start would fail with the configuration now on disk", at_next_start(status))
        }
        Threat::RestartLoses if status.of_pending => {
            ("the next start would lose huge pages with the configuration now on disk", at_next_start(status))
        }
        Threat::RestartFails => (
            "the next start would fail for want of huge pages, a restart after a crash included",
            at_next_start(status),
        ),
        Threat::RestartLoses => {
            ("the next start would lose huge pages, a restart after a crash included", at_next_start(status))
        }
    };
    let hint = match threat {
        Threat::CgroupLimit => words.raise_fault_limit(),
        _ if status.of_pending => Some(restart::hint(status)),
        _ => words.keep(),
    };
    Message { is_bad: true, message: message.to_owned(), detail: Some(format!("{}\n{detail}", figures(status))), hint }
}

/// What the next start lacks, with the running configuration or with the one on disk.
fn at_next_start(status: &Status) -> String {
    match restart::message(status).filter(|_| status.of_pending) {
        Some(message) => message,
        None => format!("At the next start {}.", Words(status).what_a_restart_lacks()),
    }
}

/// Said once when it is over.
pub fn threat_is_over(status: &Status, threat: Threat) -> Message {
    let message = match (threat, status.outlook) {
        (Threat::CgroupLimit, _) => "the cgroup allows all huge pages of shared memory again",
        (_, Outlook::Hugetlb) => "the next start would have its huge pages again",
        (Threat::RestartFails, _) => "the next start would not fail any more",
        (Threat::RestartLoses, _) => "the next start may have its huge pages again, but that is not certain",
    };
    Message { is_bad: false, message: message.to_owned(), detail: Some(figures(status)), hint: None }
}

/// Three lines of figures.
fn figures(status: &Status) -> String {
    let facts = &status.facts;
    let size = facts.segment.as_ref().map_or(Bytes(0), |segment| segment.mapping.size());
    let (inside, percent) = if facts.landing() == Landing::Hugetlb { (size, 100) } else { (Bytes(0), 0) };
    let mut lines = vec![format!("Shared memory in huge pages: {inside} of {size} ({percent}%).")];
    let number = |value: Option<u64>| value.map_or("unknown".to_owned(), |value| value.to_string());
    if let Some(page_size) = facts.huge_page_size {
        let pool = facts.pool.known();
        lines.push(format!(
            "Huge pages of {page_size}: {} needed, {} missing, {} available; the pool has {}, of them {} free, {} \
             reserved, {} surplus.",
            number(status.needed.map(|pages| pages.0)),
            number(status.missing.map(|pages| pages.0)),
            number(pool.and_then(|pool| pool.available()).map(|pages| pages.0)),
            number(pool.map(|pool| pool.nr.0)),
            number(pool.map(|pool| pool.free.0)),
            number(pool.and_then(|pool| pool.resv).map(|pages| pages.0)),
            number(pool.and_then(|pool| pool.surplus).map(|pages| pages.0)),
        ));
    }
    let huge_pages = facts.asked.huge_pages;
    lines.push(match status.cause {
        Some(cause) => format!("Cause: {cause} (huge_pages = {huge_pages})."),
        None => format!("As asked (huge_pages = {huge_pages})."),
    });
    lines.join("\n")
}
