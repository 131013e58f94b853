//! What goes into a server's log: a block at every allocation of shared memory, in the spirit of Oracle's "Large
//! Pages Information", and a word when a restart would lose what there is. Messages follow PostgreSQL's style.

use crate::Bytes;
use crate::advise::words::Words;
use crate::assess::{HugePages, Landing, Outlook, Status};
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

/// Said when shared memory has been allocated; `lost` is what a regression lost against the start before.
pub fn allocated(status: &Status, lost: Option<&Lost>) -> Message {
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
        (None, _) if is_bad(status) => words.keep(),
        (None, _) => None,
    };
    Message { is_bad: !as_asked || lost.is_some(), message, detail: Some(figures(status)), hint }
}

/// Whether a restart would lose huge pages, or fail for want of them.
pub fn is_bad(status: &Status) -> bool {
    status.outlook == Outlook::Fails || (status.facts.landing() == Landing::Hugetlb && status.outlook == Outlook::Base)
}

/// Said once when [`is_bad`] becomes true while the server runs.
pub fn outlook_turned_bad(status: &Status) -> Message {
    let words = Words(status);
    let message = match status.outlook {
        Outlook::Fails => "the next start would fail for want of huge pages, a restart after a crash included",
        _ => "the next start would lose huge pages, a restart after a crash included",
    };
    let detail = format!("{}\nAt the next start {}.", figures(status), words.what_a_restart_lacks());
    Message { is_bad: true, message: message.to_owned(), detail: Some(detail), hint: words.keep() }
}

/// Said once when it is well again.
pub fn outlook_recovered(status: &Status) -> Message {
    let message = "the next start would have its huge pages again".to_owned();
    Message { is_bad: false, message, detail: Some(figures(status)), hint: None }
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
