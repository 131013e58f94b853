//! What is news about a server: what has changed since its last record, what to say about that, and what to record.

use crate::advise::log::{self, Message};
use crate::assess::{Status, Threat};
use crate::history::Record;
use crate::model::Lost;

/// How loud a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volume {
    /// For the record.
    Log,
    /// Something is lost, or will be.
    Warning,
    /// A regression, which administrators may set a level for.
    Regression,
}

/// One look at a running server, held against its last record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// What to say, in this order.
    pub messages: Vec<(Volume, Message)>,
    /// What to record; `None` if nothing has changed.
    pub record: Option<Record>,
}

/// How loud the block is that tells where shared memory landed at a start.
pub const fn volume_of_start(block: &Message, is_regression: bool) -> Volume {
    match (is_regression, block.is_bad) {
        (true, _) => Volume::Regression,
        (false, true) => Volume::Warning,
        (false, false) => Volume::Log,
    }
}

/// A start that nobody has told of yet: where shared memory landed, and what threatens it already. `now`: the record of
/// `status`. `before`: the last record of the same instance.
pub fn start(status: &Status, mut now: Record, before: Option<&Record>) -> News {
    let lost = before.and_then(|before| now.compare_with(before));
    let block = log::allocated(status, lost.as_ref(), &[]);
    let mut said = vec![(volume_of_start(&block, lost.is_some()), block)];
    said.extend(messages(status, None, &[]));
    News { messages: said, record: Some(now) }
}

/// `now`: the record of `status` as it is. `before`: the last record of the same instance, or what it would have been.
/// `warned`: the threats that have been warned of and are not over. `also`: what else has changed, such as settings.
pub fn news(status: &Status, mut now: Record, before: Option<&Record>, warned: &[Threat], also: Vec<String>) -> News {
    let mut changes = before.map(|before| now.changes_since(before)).unwrap_or_default();
    let lost = before.filter(|_| !changes.is_empty()).and_then(|before| now.compare_with(before));
    let messages = messages(status, lost.as_ref(), warned);
    changes.splice(0..0, also);
    if before.is_some() && changes.is_empty() {
        return News { messages, record: None };
    }
    now.add_detail(&changes);
    News { messages, record: Some(now) }
}

/// One message when a threat comes up, one when it is over, one for what was lost otherwise.
fn messages(status: &Status, lost: Option<&Lost>, warned: &[Threat]) -> Vec<(Volume, Message)> {
    let threats = status.threats();
    let new = threats.iter().filter(|threat| !warned.contains(threat));
    let mut messages: Vec<_> = new.map(|threat| (Volume::Warning, log::threatened(status, *threat))).collect();
    let replaced = |over: &Threat| over.is_of_restart() && threats.iter().any(|threat| threat.is_of_restart());
    let over = warned.iter().filter(|threat| !threats.contains(threat) && !replaced(threat));
    messages.extend(over.map(|threat| (Volume::Log, log::threat_is_over(status, *threat))));
    // What only the outlook has lost is a threat, and has been said.
    if let Some(lost) = lost.filter(|lost| !lost.only_outlook()) {
        messages.push((Volume::Regression, log::allocated(status, Some(lost), &[])));
    }
    messages
}
