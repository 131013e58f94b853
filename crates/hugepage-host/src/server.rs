//! One running server, what was decided of it alone, and what it needs of its pool.

use hugepage_assess::model::{Facts, Pending, Segment};
use hugepage_facts::{HostFacts, InstanceKey, ServerFacts};
use hugepage_kernel::{Bytes, Notes};
use hugepage_sizing::PoolNeed;

use crate::server_start::alone;

/// A server, and what was decided of it alone.
pub(super) struct Server<'a> {
    pub(super) facts: &'a ServerFacts,
    /// What an assessment knows of it as if it were alone.
    pub(super) alone: Facts,
    /// What could not be read of it, and what of it is not known by that.
    pub(super) notes: Notes,
}

impl<'a> Server<'a> {
    pub(super) fn new(host: &HostFacts, facts: &'a ServerFacts, reserve_percent: u32) -> Self {
        let mut notes = Notes::default();
        let alone = alone(host, facts, reserve_percent, &mut notes);
        Self {
            facts,
            alone,
            notes,
        }
    }

    pub(super) fn need(&self) -> PoolNeed {
        need(self.facts.id.key(), &self.alone)
    }

    /// The memory in System V segments of huge pages.
    pub(super) fn held(&self) -> Bytes {
        let segment = self
            .alone
            .segment
            .as_ref()
            .filter(|_| self.facts.id.oracle().is_some());
        segment.map_or(Bytes(0), |segment| segment.in_huge_pages)
    }
}

/// What a running server needs of its pool.
pub(super) fn need(key: InstanceKey, facts: &Facts) -> PoolNeed {
    let current = facts.current_start();
    let held = current.own();
    let with = |pending: &Pending| held.saturating_add(current.lack(pending));
    let pages = with(&facts.pending);
    PoolNeed {
        pages,
        running: with(&Pending::Unchanged),
        held,
        movable: current
            .segment
            .filter(|_| pages > held)
            .map_or(Bytes(0), Segment::in_base_pages),
        is_running: true,
        ..PoolNeed::of(key)
    }
}
