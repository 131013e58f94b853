//! What goes into a server's log: a block at every allocation of shared memory, in the spirit of Oracle's "Large
//! Pages Information", and a word when a restart would lose what there is. Messages follow PostgreSQL's style.

use crate::Bytes;
use crate::advise::message::pending;
use crate::advise::message::phrases::Words;
use crate::advise::message::terms::Terms;
use crate::assess::{Outlook, Status, Threat};
use crate::model::{HugePages, Landing, Lost};

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
    let memory = words.terms().the_memory;
    let message = match (lost, landing) {
        (Some(lost), _) => format!("{memory} has lost what it had: it {lost}"),
        (None, Landing::Hugetlb) => format!("{memory} landed in {}", words.huge_pages()),
        (None, Landing::Unknown) => format!("where {memory} landed could not be found out"),
        (None, _) if as_asked => format!("{memory} landed in {}, as {} asks", words.pages_now(), words.asked()),
        (None, Landing::Mixed) => format!("{memory} landed in huge pages only in part"),
        (None, _) => format!("{memory} did not land in huge pages"),
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
    let next_start = words.terms().next_start;
    let (message, detail) = match threat {
        Threat::CgroupLimit => (
            format!("a cgroup allows fewer huge pages than {} has", words.terms().the_memory),
            format!("What touches more than {} of them is killed by SIGBUS, or fails to read.", words.allowed()),
        ),
        // A restart after a crash keeps the running configuration.
        Threat::RestartFails if status.of_pending => {
            ("the next start would fail with the configuration now on disk".to_owned(), at_next_start(status))
        }
        Threat::RestartLoses if status.of_pending => (
            "the next start would lose huge pages with the configuration now on disk".to_owned(),
            at_next_start(status),
        ),
        Threat::RestartFails => {
            (format!("the next start would fail for want of huge pages{next_start}"), at_next_start(status))
        }
        Threat::RestartLoses => (format!("the next start would lose huge pages{next_start}"), at_next_start(status)),
    };
    let hint = match threat {
        Threat::CgroupLimit => words.raise_fault_limit(),
        _ if status.of_pending => Some(pending::hint(status)),
        _ => words.keep(),
    };
    Message { is_bad: true, message, detail: Some(format!("{}\n{detail}", figures(status))), hint }
}

/// What the next start lacks, with the running configuration or with the one on disk.
fn at_next_start(status: &Status) -> String {
    match pending::message(status).filter(|_| status.of_pending) {
        Some(message) => message,
        None => format!("At the next start {}.", Words(status).what_a_restart_lacks()),
    }
}

/// Said once when it is over.
pub fn threat_is_over(status: &Status, threat: Threat) -> Message {
    let memory = Terms::of(status.facts.asked.product).the_memory;
    let message = match (threat, status.outlook) {
        (Threat::CgroupLimit, _) => format!("the cgroup allows all huge pages of {memory} again"),
        (_, Outlook::Hugetlb) => "the next start would have its huge pages again".to_owned(),
        (Threat::RestartFails, _) => "the next start would not fail any more".to_owned(),
        (Threat::RestartLoses, _) => "the next start may have its huge pages again, but that is not certain".to_owned(),
    };
    Message { is_bad: false, message, detail: Some(figures(status)), hint: None }
}

/// Three lines of figures.
fn figures(status: &Status) -> String {
    let facts = &status.facts;
    let size = facts.segment_size().unwrap_or_default();
    let inside = facts.segment.as_ref().map_or(Bytes(0), |segment| segment.in_huge_pages);
    // Rounded down, as Oracle's alert log does: all but one page is 99%.
    let percent = inside.0.saturating_mul(100).checked_div(size.0).unwrap_or_default();
    let terms = Terms::of(facts.asked.product);
    let mut lines = vec![format!("{} in huge pages: {inside} of {size} ({percent}%).", terms.memory)];
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
    let setting = terms.setting(facts.asked.huge_pages);
    lines.push(match status.cause {
        Some(cause) => format!("Cause: {cause} ({setting})."),
        None => format!("As asked ({setting})."),
    });
    lines.join("\n")
}
