//! Events of a server since its last record: what to log and what to record.

use crate::advice::log::{self, LogMessage};
use crate::assessment::{Status, Threat};
use crate::history::Record;
use crate::model::{Landing, Lost, Pending};

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
    let mut messages = vec![log::allocated(status, lost.as_ref(), &[])];
    messages.extend(entries(status, None, &[]));
    EventReport { messages, record: Some(now) }
}

/// For a running server. `now`: the record of `status`. `before`: the last record of the same instance. `warned`: the
/// [warnings](Status::warnings) that were logged and are not over.
pub fn update(status: &Status, mut now: Record, before: Option<&Record>, warned: &[Threat]) -> EventReport {
    let changes = before.map(|before| now.changes_since(before)).unwrap_or_default();
    let lost = before.filter(|_| !changes.is_empty()).and_then(|before| now.compare_with(before));
    let messages = entries(status, lost.as_ref(), warned);
    if before.is_some() && changes.is_empty() {
        return EventReport { messages, record: None };
    }
    now.add_detail(&changes);
    EventReport { messages, record: Some(now) }
}

/// The warnings that hold now: those of `status`, and logged ones of which nothing is known: of the next start while its demand is
/// unknown, and of any while no shared memory is seen, as when the server is about to end.
pub fn standing(status: &Status, warned: &[Threat]) -> Vec<Threat> {
    let mut standing = status.warnings();
    let is_unseen = status.facts.landing() == Landing::Unknown;
    let is_unknown = |threat: &&Threat| is_unseen || status.facts.pending == Pending::Unknown && threat.is_of_restart();
    standing.extend(warned.iter().filter(is_unknown));
    standing
}

/// One entry for each new threat, for each that is over, and for another loss. A threat of the next start with the running
/// settings is one of a crash as well; with the configuration on disk it is not.
fn entries(status: &Status, lost: Option<&Lost>, warned: &[Threat]) -> Vec<LogMessage> {
    let (threats, standing) = (status.threats(), standing(status, warned));
    let is_new = |threat: &Threat| !warned.contains(threat);
    let speaks_of_crash =
        !threats.contains(&Threat::CrashLoses) && threats.iter().any(|t| t.is_of_restart() && is_new(t));
    let is_said = |threat: &Threat| *threat == Threat::CrashLoses && speaks_of_crash;
    let new = standing.iter().filter(|threat| is_new(threat) && !is_said(threat));
    let mut messages: Vec<_> = new.map(|threat| log::threatened(status, *threat)).collect();
    let replaced = |over: &Threat| over.is_of_restart() && threats.iter().any(|threat| threat.is_of_restart());
    let over = warned.iter().filter(|threat| !standing.contains(threat) && !replaced(threat));
    let over: Vec<_> = over.copied().collect();
    let ends_with_restart = status.crash.outlook == status.outlook && over.iter().any(|threat| threat.is_of_restart());
    let over = over.iter().filter(|threat| **threat != Threat::CrashLoses || !ends_with_restart);
    messages.extend(over.map(|threat| log::threat_is_over(status, *threat)));
    // A loss of the outlook alone is a threat, which has its entry above.
    if let Some(lost) = lost.filter(|lost| !lost.only_outlook()) {
        messages.push(log::allocated(status, Some(lost), &[]));
    }
    messages
}
