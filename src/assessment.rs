//! The assessment of this server: what it and its host are now, beside what the configuration on disk asks for.

use hugepage_core::Notes;
use hugepage_core::assess::Status;
use hugepage_core::collect::server::{facts, ground};
use hugepage_core::model::Pending;
use hugepage_core::read::Root;

use crate::preflight::Answer;
use crate::{preflight::cache, server, settings, startup};

/// Now, at a price that does not depend on the number of processes or the size of memory.
pub fn now(root: &Root, notes: &mut Notes) -> Status {
    let answer = cache::answer(root, notes);
    with_answer(root, answer, true, notes)
}

/// What the postmaster sees when it has allocated shared memory, which it did for the configuration on disk.
pub fn at_allocation(root: &Root, notes: &mut Notes) -> Status {
    with_answer(root, None, false, notes)
}

/// With what the server's program said of the configuration on disk. With `or_unchanged`, an answer that comes to what
/// the running server has counts as no change.
pub fn with_answer(root: &Root, answer: Option<Answer>, or_unchanged: bool, notes: &mut Notes) -> Status {
    let mapping = server::main_mapping(root, notes);
    let facts = server::with_hierarchy(root, notes, |view, notes| {
        let mut facts = facts(root, server::asked(), mapping, view, settings::reserve_percent(), notes);
        facts.pending = match answer {
            None => Pending::Unchanged,
            Some(Answer::Starts(demand)) if or_unchanged && facts.is_met_by(&demand) => Pending::Unchanged,
            Some(Answer::Starts(demand)) => {
                let default = facts.meminfo.as_ref().and_then(|meminfo| meminfo.huge_page_size);
                let size = demand.asked.huge_page_size.or(default);
                Pending::Changed(demand, ground(root, size, facts.meminfo.as_ref(), view, notes))
            }
            Some(Answer::Refuses(error)) => Pending::Refused(error),
            Some(Answer::Unknown(why)) => {
                notes.add(why);
                Pending::Unknown
            }
        };
        (facts.cause_at_start, facts.loss) = startup::cause_and_loss();
        facts
    });
    Status::of(facts)
}
