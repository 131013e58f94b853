//! Entries of a server's log: one for every allocation of shared memory, like Oracle's "Large Pages Information", and
//! one when a restart would lose huge pages. They follow PostgreSQL's style for messages.

use hugepage_kernel::Bytes;

use crate::advice::message::product::ProductTerms;
use crate::advice::message::status_text::StatusText;
use crate::advice::message::{self, pending};
use crate::assessment::{Finding, Outlook, Status, Threat};
use crate::model::{HugePages, Landing, Lost};

/// One entry of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogMessage {
    /// Whether it reports a problem.
    pub is_bad: bool,
    /// The primary message, lower case and without a period; of a problem with its finding in brackets, for programs.
    pub message: String,
    /// The numbers, in sentences.
    pub detail: Option<String>,
    /// What to do, a sentence.
    pub hint: Option<String>,
}

/// For an allocation of shared memory. `lost`: the regression against the start before; `notes`: what could not be read.
pub fn allocated(status: &Status, lost: Option<&Lost>, notes: &[String]) -> LogMessage {
    let text = StatusText(status);
    let landing = status.facts.landing();
    let as_requested = landing == Landing::Hugetlb || status.facts.requested.huge_pages == HugePages::Off;
    let memory = text.terms().the_memory;
    let message = match (lost, landing) {
        (Some(lost), _) => format!("{memory} regressed: it {lost}"),
        (None, Landing::Hugetlb) => format!("{memory} landed in {}", text.huge_pages()),
        (None, Landing::Unknown) => format!("the pages of {memory} could not be determined"),
        (None, _) if as_requested => {
            format!("{memory} landed in {}, as requested by {}", text.current_pages(), text.setting())
        }
        (None, Landing::Mixed) => format!("{memory} landed only partly in huge pages"),
        (None, _) => format!("{memory} did not land in huge pages"),
    };
    let hint = match (status.cause, landing) {
        _ if as_requested && lost.is_none() => None,
        (_, Landing::Unknown) => None,
        (Some(cause), _) => message::hint_of_finding(status, &Finding::BasePages(cause)),
        (None, _) => status.threats().first().and_then(|threat| message::hint_of_finding(status, &threat.finding())),
    };
    let notes = notes.iter().map(|note| format!("Note: {note}."));
    let detail: Vec<_> = std::iter::once(numbers(status)).chain(notes).collect();
    let is_bad = !as_requested || lost.is_some();
    let of_landing = ["base_pages", "transparent_huge_pages", "landing_unknown"];
    let found = || status.findings.iter().map(|(_, finding)| finding.name()).find(|name| of_landing.contains(name));
    let code = if lost.is_some() { Some("regressed") } else { found().filter(|_| is_bad) };
    let message = message + &code.map_or(String::new(), |code| format!(" [{code}]"));
    LogMessage { is_bad, message, detail: Some(detail.join("\n")), hint }
}

/// For a threat that appears while the server runs.
pub fn threatened(status: &Status, threat: Threat) -> LogMessage {
    let text = StatusText(status);
    let next_start = text.next_start();
    let (message, detail) = match threat {
        Threat::CgroupLimit => (
            format!("a cgroup allows fewer huge pages than {} uses", text.terms().the_memory),
            exceeds(&text, &Finding::CgroupBelowSegment),
        ),
        Threat::SharedLimit => (
            "a cgroup allows fewer huge pages than its processes have reserved".to_owned(),
            exceeds(&text, &Finding::SharedLimit),
        ),
        Threat::CrashLoses => (
            match status.crash.outlook {
                Outlook::Fails => "the restart after a crash of one process would fail".to_owned(),
                _ => "the restart after a crash of one process would lose huge pages".to_owned(),
            },
            format!("Restart after a crash: {}.", text.crash_shortfall()),
        ),
        // A restart after a crash keeps the running configuration.
        Threat::RestartFails if status.of_pending => {
            ("the next start would fail with the configuration on disk".to_owned(), at_next_start(status))
        }
        Threat::RestartLoses if status.of_pending => {
            ("the next start would lose huge pages with the configuration on disk".to_owned(), at_next_start(status))
        }
        Threat::RestartFails => (format!("the next start would fail{next_start}"), at_next_start(status)),
        Threat::RestartLoses => (format!("the next start would lose huge pages{next_start}"), at_next_start(status)),
    };
    let message = format!("{message} [{}]", threat.finding().name());
    let hint = message::hint_of_finding(status, &threat.finding());
    LogMessage { is_bad: true, message, detail: Some(format!("{}\n{detail}", numbers(status))), hint }
}

fn exceeds(text: &StatusText<'_>, finding: &Finding) -> String {
    text.0.excess_of(finding).map(|excess| text.exceeds(&excess)).unwrap_or_default()
}

/// The shortfall of the next start, with the running configuration or the one on disk.
fn at_next_start(status: &Status) -> String {
    match status.of_pending {
        true => pending::message(status),
        false => format!("Next start: {}.", StatusText(status).shortfall()),
    }
}

/// For the end of a threat.
pub fn threat_is_over(status: &Status, threat: Threat) -> LogMessage {
    let text = StatusText(status);
    let (memory, also) = (text.terms().the_memory, text.next_start());
    let message = match (threat, status.outlook) {
        (Threat::CgroupLimit, _) => format!("the cgroup allows all huge pages of {memory} again"),
        (Threat::SharedLimit, _) => {
            "the cgroup allows all huge pages that its processes have reserved again".to_owned()
        }
        (Threat::CrashLoses, _) if status.crash.outlook == Outlook::Unknown => {
            "the restart after a crash may get its huge pages again, but this is not guaranteed".to_owned()
        }
        (Threat::CrashLoses, _) => "the restart after a crash would no longer lose huge pages".to_owned(),
        (_, Outlook::Hugetlb) if status.warnings().contains(&Threat::CrashLoses) => {
            "the next start would get its huge pages again, but not the restart after a crash".to_owned()
        }
        (_, Outlook::Hugetlb) => format!("the next start would get its huge pages again{also}"),
        (Threat::RestartFails, _) => format!("the next start would no longer fail{also}"),
        (Threat::RestartLoses, _) => {
            format!("the next start may get its huge pages again, but this is not guaranteed{also}")
        }
    };
    LogMessage { is_bad: false, message, detail: Some(numbers(status)), hint: None }
}

/// Three lines with the numbers.
fn numbers(status: &Status) -> String {
    let facts = &status.facts;
    let size = facts.segment_size().unwrap_or_default();
    let inside = facts.segment.as_ref().map_or(Bytes(0), |segment| segment.in_huge_pages);
    // Rounded down, as Oracle's alert log does: all but one page is 99%.
    let percent = inside.0.saturating_mul(100).checked_div(size.0).unwrap_or_default();
    let terms = ProductTerms::of_product(facts.requested.product);
    let mut lines = vec![format!("{} in huge pages: {inside} of {size} ({percent}%).", terms.memory)];
    let number = |value: Option<u64>| value.map_or("unknown".to_owned(), |value| value.to_string());
    if let Some(page_size) = facts.pool_state.huge_page_size {
        let pool = facts.pool_state.pool.known();
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
    let setting = terms.setting(facts.requested.huge_pages);
    lines.push(match status.cause {
        Some(cause) => format!("Cause: {cause} ({setting})."),
        None => format!("As asked ({setting})."),
    });
    lines.join("\n")
}
