//! One running server, what was decided of it alone, and what it needs of its pool.

use hugepage_assess::model::{CurrentStart, Pending, Segment};
use hugepage_facts::{HostFacts, InstanceKey, ServerFacts};
use hugepage_kernel::Bytes;
use hugepage_sizing::PoolNeed;

use crate::server_start::ServerRequest;

/// A server, and what was decided of it alone.
pub(super) struct Server<'a> {
    pub(super) facts: &'a ServerFacts,
    pub(super) request: ServerRequest,
}

impl<'a> Server<'a> {
    pub(super) fn new(host: &HostFacts, facts: &'a ServerFacts) -> Self {
        let request = ServerRequest::new(host, facts);
        Self { facts, request }
    }

    pub(super) fn need(&self) -> PoolNeed {
        let request = &self.request;
        need(
            self.facts.id.key(),
            &request.current_start(),
            &request.pending,
        )
    }

    /// The memory in System V segments of huge pages.
    pub(super) fn held(&self) -> Bytes {
        let segment = self
            .request
            .segment
            .as_ref()
            .filter(|_| self.facts.id.oracle().is_some());
        segment.map_or(Bytes(0), |segment| segment.in_huge_pages)
    }
}

/// What a running server needs of its pool.
pub(super) fn need(key: InstanceKey, current: &CurrentStart<'_>, pending: &Pending) -> PoolNeed {
    let held = current.own();
    let with = |pending: &Pending| held.saturating_add(current.lack(pending));
    let pages = with(pending);
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
