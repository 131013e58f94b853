//! Events of a server since its last record: what to record, and what to log, in PostgreSQL's style for messages.

use hugepage_facts::{Landing, Lost};
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::{Bytes, Pages};

use crate::advice::message::ProductTerms;
use crate::advice::message::status_text::StatusText;
use crate::advice::message::{self, pending};
use crate::assessment::{Finding, Outlook, Status, Threat};
use crate::history::{Event, Record};
use crate::model::{HugePages, Pending};

/// The difference between a server and its last record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventReport {
    /// What to log, in this order.
    pub messages: Vec<LogMessage>,
    /// What to record; `None` if nothing changed.
    pub record: Option<Record>,
}

/// For a start that is not yet recorded: where shared memory landed, and what threatens it. `before`: the last record.
pub fn start(status: &Status, mut now: Record, before: Option<&Record>) -> EventReport {
    let lost = before.and_then(|before| now.compare_with(before));
    let mut messages = vec![allocated(status, lost.as_ref(), &[])];
    messages.extend(entries(status, None, &[]));
    EventReport {
        messages,
        record: Some(now),
    }
}

/// For a running server. `now`: the record of `status`. `before`: the last record of the same instance. `warned`: the
/// [warnings](Status::warnings) that were logged and are not over.
pub fn update(
    status: &Status,
    mut now: Record,
    before: Option<&Record>,
    warned: &[Threat],
) -> EventReport {
    let changes = before
        .map(|before| now.changes_since(before))
        .unwrap_or_default();
    let lost = before
        .filter(|_| !changes.is_empty())
        .and_then(|before| now.compare_with(before));
    now.event = before.map_or(now.event, |before| now.event_since(before));
    let mut messages = entries(status, lost.as_ref(), warned);
    // What was lost has its entry above.
    messages.extend(of_transparent(status, now.event).filter(|_| lost.is_none()));
    if before.is_some() && changes.is_empty() {
        return EventReport {
            messages,
            record: None,
        };
    }
    now.add_detail(&changes);
    EventReport {
        messages,
        record: Some(now),
    }
}

/// The warnings that hold now: those of `status`, and logged ones of which nothing is known: of the next start while its demand is
/// unknown, and of any while no shared memory is seen, as when the server is about to end.
pub fn standing(status: &Status, warned: &[Threat]) -> Vec<Threat> {
    let mut standing = status.warnings();
    let is_unseen = status.facts.landing() == Landing::Unknown;
    let is_unknown = |threat: &&Threat| {
        is_unseen || status.facts.pending == Pending::Unknown && threat.is_of_restart()
    };
    standing.extend(warned.iter().filter(is_unknown));
    standing
}

/// One entry for each new threat, for each that is over, and for another loss.
fn entries(status: &Status, lost: Option<&Lost>, warned: &[Threat]) -> Vec<LogMessage> {
    let standing = standing(status, warned);
    let begun = begun(status, &standing, warned).into_iter();
    let ended = ended(status, &standing, warned).into_iter();
    let mut messages: Vec<_> = begun
        .map(|threat| threatened(status, threat))
        .chain(ended.map(|threat| threat_is_over(status, threat)))
        .collect();
    // A loss of the outlook alone is a threat, which has its entry above.
    if let Some(lost) = lost.filter(|lost| !lost.only_outlook()) {
        messages.push(allocated(status, Some(lost), &[]));
    }
    messages
}

/// The threats that nobody was warned of. That of the next start with the running settings is one of a crash as well, which needs no
/// entry of its own; with the configuration on disk it is not.
fn begun(status: &Status, standing: &[Threat], warned: &[Threat]) -> Vec<Threat> {
    let mut new = without(standing, warned);
    if one_of_restart(&new) && !status.threats().contains(&Threat::CrashLoses) {
        new.retain(|threat| *threat != Threat::CrashLoses);
    }
    new
}

/// The threats that are over. One of the next start is not while another one stands, and its end is also that of a crash which would
/// get the same.
fn ended(status: &Status, standing: &[Threat], warned: &[Threat]) -> Vec<Threat> {
    let mut over = without(warned, standing);
    if one_of_restart(&status.threats()) {
        over.retain(|threat| !threat.is_of_restart());
    }
    if one_of_restart(&over) && status.crash.outlook == status.forecast.outlook {
        over.retain(|threat| *threat != Threat::CrashLoses);
    }
    over
}

fn without(threats: &[Threat], others: &[Threat]) -> Vec<Threat> {
    let threats = threats.iter().copied();
    threats.filter(|threat| !others.contains(threat)).collect()
}

fn one_of_restart(threats: &[Threat]) -> bool {
    threats.iter().any(|threat| threat.is_of_restart())
}

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
    let text = StatusText::new(status);
    let landing = status.facts.landing();
    let as_requested =
        landing == Landing::Hugetlb || status.facts.requested.huge_pages == HugePages::Off;
    let memory = text.terms.the_memory;
    let message = match (lost, landing) {
        (Some(lost), _) => format!("{memory} regressed: it {lost}"),
        (None, Landing::Hugetlb) => format!("{memory} landed in {}", text.huge_pages()),
        (None, Landing::Unknown) => format!("the pages of {memory} could not be determined"),
        (None, _) if as_requested => {
            format!(
                "{memory} landed in {}, as requested by {}",
                text.current_pages(),
                text.setting()
            )
        }
        (None, Landing::Mixed) => format!("{memory} landed only partly in huge pages"),
        (None, _) => format!("{memory} did not land in huge pages"),
    };
    let hint = match (status.cause, landing) {
        _ if as_requested && lost.is_none() => None,
        (_, Landing::Unknown) => None,
        (Some(cause), _) => message::hint_of_finding(status, &Finding::BasePages(cause)),
        (None, _) => status
            .threats()
            .first()
            .and_then(|threat| message::hint_of_finding(status, &threat.finding())),
    };
    let notes = notes.iter().map(|note| format!("Note: {note}."));
    let detail: Vec<_> = std::iter::once(numbers(status)).chain(notes).collect();
    let is_bad = !as_requested || lost.is_some();
    let code = if lost.is_some() {
        Some("regressed")
    } else {
        on_landing(status).filter(|_| is_bad).map(Finding::name)
    };
    let message = message + &code.map_or(String::new(), |code| format!(" [{code}]"));
    LogMessage {
        is_bad,
        message,
        detail: Some(detail.join("\n")),
        hint,
    }
}

/// For a collapse into transparent huge pages, and for their end; `None` for other events.
fn of_transparent(status: &Status, event: Event) -> Option<LogMessage> {
    let memory = ProductTerms::of_product(status.facts.requested.product).the_memory;
    let what = match (event, status.facts.landing()) {
        (Event::Collapse, Landing::Thp) => "is in",
        (Event::Collapse, _) => "is partly in",
        (Event::Split, _) => "has lost",
        _ => return None,
    };
    let finding = on_landing(status);
    Some(LogMessage {
        is_bad: false,
        message: format!("{memory} {what} transparent huge pages now"),
        detail: finding.map(|finding| message::of_finding(status, finding)),
        hint: finding.and_then(|finding| message::hint_of_finding(status, finding)),
    })
}

/// The finding on the pages of shared memory; `None` if they are as requested.
fn on_landing(status: &Status) -> Option<&Finding> {
    const NAMES: [&str; 3] = ["base_pages", "transparent_huge_pages", "landing_unknown"];
    let mut findings = status.findings.iter().map(|(_, finding)| finding);
    findings.find(|finding| NAMES.contains(&finding.name()))
}

/// For a threat that appears while the server runs.
pub fn threatened(status: &Status, threat: Threat) -> LogMessage {
    let text = StatusText::new(status);
    let (message, detail) = match threat {
        Threat::CgroupLimit => (
            format!(
                "a cgroup allows fewer huge pages than {} uses",
                text.terms.the_memory
            ),
            text.exceeds(&Finding::CgroupBelowSegment),
        ),
        Threat::SharedLimit => (
            "a cgroup allows fewer huge pages than its processes have reserved".to_owned(),
            text.exceeds(&Finding::SharedLimit),
        ),
        Threat::CrashLoses => (
            match status.crash.outlook {
                Outlook::Fails => "the restart after a crash of one process would fail".to_owned(),
                _ => "the restart after a crash of one process would lose huge pages".to_owned(),
            },
            format!("Restart after a crash: {}.", text.crash_shortfall()),
        ),
        Threat::RestartFails | Threat::RestartLoses => {
            let what = if threat == Threat::RestartFails {
                "fail"
            } else {
                "lose huge pages"
            };
            match status.of_pending {
                // A restart after a crash keeps the running configuration.
                true => (
                    format!("the next start would {what} with the configuration on disk"),
                    pending::message(status),
                ),
                false => (
                    format!("the next start would {what}{}", text.next_start()),
                    format!("Next start: {}.", text.shortfall()),
                ),
            }
        }
    };
    let message = format!("{message} [{}]", threat.finding().name());
    let hint = message::hint_of_finding(status, &threat.finding());
    LogMessage {
        is_bad: true,
        message,
        detail: Some(format!("{}\n{detail}", numbers(status))),
        hint,
    }
}

/// For the end of a threat.
pub fn threat_is_over(status: &Status, threat: Threat) -> LogMessage {
    let text = StatusText::new(status);
    let (memory, also) = (text.terms.the_memory, text.next_start());
    let message = match (threat, status.forecast.outlook) {
        (Threat::CgroupLimit, _) => format!("the cgroup allows all huge pages of {memory} again"),
        (Threat::SharedLimit, _) => {
            "the cgroup allows all huge pages that its processes have reserved again".to_owned()
        }
        (Threat::CrashLoses, _) if status.crash.outlook == Outlook::Unknown => {
            "the restart after a crash may get its huge pages again, but this is not guaranteed"
                .to_owned()
        }
        (Threat::CrashLoses, _) => {
            "the restart after a crash would no longer lose huge pages".to_owned()
        }
        (_, Outlook::Hugetlb) if status.warnings().contains(&Threat::CrashLoses) => {
            "the next start would get its huge pages again, but not the restart after a crash"
                .to_owned()
        }
        (_, Outlook::Hugetlb) => format!("the next start would get its huge pages again{also}"),
        (Threat::RestartFails, _) => format!("the next start would no longer fail{also}"),
        (Threat::RestartLoses, _) => {
            format!("the next start may get its huge pages again, but this is not guaranteed{also}")
        }
    };
    LogMessage {
        is_bad: false,
        message,
        detail: Some(numbers(status)),
        hint: None,
    }
}

/// Three lines with the numbers.
fn numbers(status: &Status) -> String {
    let facts = &status.facts;
    let size = facts.segment_size().unwrap_or_default();
    let inside = facts
        .segment
        .as_ref()
        .map_or(Bytes(0), |segment| segment.in_huge_pages);
    // Rounded down, as Oracle's alert log does: all but one page is 99%.
    let percent = inside
        .0
        .saturating_mul(100)
        .checked_div(size.0)
        .unwrap_or_default();
    let terms = ProductTerms::of_product(facts.requested.product);
    let mut lines = vec![format!(
        "{} in huge pages: {inside} of {size} ({percent}%).",
        terms.memory
    )];
    let number =
        |pages: Option<Pages>| pages.map_or("unknown".to_owned(), |pages| pages.to_string());
    if let Some(page_size) = facts.pool_state.huge_page_size {
        let pool = facts.pool();
        lines.push(format!(
            "Huge pages of {page_size}: {} needed, {} missing, {} available; the pool has {}, of them {} free, {} \
             reserved, {} surplus.",
            number(status.crash.needed),
            number(status.missing),
            number(pool.and_then(Pool::available)),
            number(pool.map(|pool| pool.nr)),
            number(pool.map(|pool| pool.free)),
            number(pool.and_then(|pool| pool.resv)),
            number(pool.and_then(|pool| pool.surplus)),
        ));
    }
    let setting = terms.setting(facts.requested.huge_pages);
    lines.push(match status.cause {
        Some(cause) => format!("Cause: {cause} ({setting})."),
        None => format!("As configured: {setting}."),
    });
    lines.join("\n")
}
