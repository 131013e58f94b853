//! Why a segment is not in huge pages, from what the server asked for and what the host has.

use hugepage_kernel::cgroups::cgroup::CgroupLimit;
use hugepage_kernel::{Bytes, Pages};

use crate::assessment::node_room::NodeRoom;
use crate::model::{Cause, Facts, HugePages, Landing, LockLimit, PoolFact, Requested};

impl Cause {
    /// `None` if the segment is in huge pages. `needed`: the pages that the segment takes or would take.
    pub fn of_server(facts: &Facts, needed: Option<Pages>) -> Option<Self> {
        match facts.segment.as_ref().map(|segment| segment.landing) {
            Some(Landing::Hugetlb) => return None,
            None | Some(Landing::Unknown) => return Some(Self::Unknown),
            Some(Landing::Thp | Landing::PartialThp | Landing::Mixed | Landing::Base) => {}
        }
        let room = facts
            .pool_state
            .limits
            .as_ref()
            .and_then(|limits| limits.tightest_reservation_without(Bytes(0)))
            .map(CgroupLimit::room);
        let left = |available: Pages| available.saturating_add(facts.own());
        let has = facts.pool_state.pool.known().map(|pool| (pool.nr, pool.available().map(left)));
        let is_short = matches!(needed.and_then(|needed| facts.node_room(needed)), Some(NodeRoom::Short(_)));
        let refusal =
            Self::of_refusal(&facts.requested, needed, &facts.pool_state.pool, has, room, facts.pool_state.lock_limit);
        Some(match refusal.or_of_nodes(is_short) {
            // Nothing prevents huge pages now, so the cause that was seen at the start is the best answer.
            Self::Unknown => facts.past.cause_at_start.unwrap_or(Self::Unknown),
            cause => cause,
        })
    }

    /// `NodeLimit` where all else would let the server have its pages, and the nodes do not.
    pub(super) fn or_of_nodes(self, is_short: bool) -> Self {
        if self == Self::Unknown && is_short { Self::NodeLimit } else { self }
    }

    /// Why a server that asks for `needed` pages does not get them. `has`: the pages of the pool, and those of them
    /// that no other process uses or has reserved. `room`: the bytes that the cgroup limit leaves for reservations.
    /// `lock_limit`: the permission that the server lacks.
    pub fn of_refusal(
        requested: &Requested,
        needed: Option<Pages>,
        pool: &PoolFact,
        has: Option<(Pages, Option<Pages>)>,
        room: Option<Bytes>,
        lock_limit: Option<LockLimit>,
    ) -> Self {
        if requested.huge_pages == HugePages::Off {
            return Self::Disabled;
        }
        if requested.is_in_files() {
            return Self::MemoryTarget;
        }
        if requested.sysv {
            return Self::SysvSharedMemory;
        }
        let (page_size, needed, (all, left)) = match (pool, needed, has) {
            (PoolFact::Unsupported(..), ..) => return Self::PageSizeUnsupported,
            (PoolFact::Known(pool), Some(needed), Some(has)) => (pool.page_size, needed, has),
            _ => return Self::Unknown,
        };
        match left {
            _ if all == Pages(0) => Self::PoolEmpty,
            _ if all < needed => Self::PoolTooSmall,
            Some(left) if left < needed => Self::PoolTaken,
            _ if room.is_some_and(|room| room < page_size.times(needed)) => Self::CgroupLimit,
            _ => match lock_limit.filter(|limit| limit.refuses(page_size.times(needed))) {
                Some(limit) => limit.cause(),
                None => Self::Unknown,
            },
        }
    }
}
