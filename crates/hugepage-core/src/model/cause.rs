//! Why a segment is not in huge pages, worked out from what the server asked and what the host has.

use std::fmt;

use crate::model::landing::Landing;
use crate::model::server::{Asked, Facts, HugePages, LockLimit, PoolFact, Product};
use crate::read::cgroup::CgroupLimit;
use crate::{Bytes, Pages};

/// Why shared memory is not as asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// `huge_pages = off`.
    Disabled,
    /// `MEMORY_TARGET` (Oracle), whose SGA is files in /dev/shm.
    MemoryTarget,
    /// `shared_memory_type = sysv`, for which PostgreSQL never asks for huge pages.
    SysvSharedMemory,
    /// The kernel or CPU has no pages of `huge_page_size`.
    PageSizeUnsupported,
    /// The pool has no pages at all.
    PoolEmpty,
    /// The pool has pages, but fewer than needed.
    PoolTooSmall,
    /// The pool has pages enough, but others have them.
    PoolTaken,
    /// The pool has pages enough, but a cgroup may not reserve them.
    CgroupLimit,
    /// The pool has pages enough, but the server may not lock that much memory.
    MemlockLimit,
    /// The pool has pages enough, but the kernel lets only a group have them that the server is not in.
    ShmGroup,
    /// Nothing of what can be seen explains it (any more).
    Unknown,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Disabled,
        Self::MemoryTarget,
        Self::SysvSharedMemory,
        Self::PageSizeUnsupported,
        Self::PoolEmpty,
        Self::PoolTooSmall,
        Self::PoolTaken,
        Self::CgroupLimit,
        Self::MemlockLimit,
        Self::ShmGroup,
        Self::Unknown,
    ];

    /// `None` where the segment is in huge pages. `needed`: the pages that the segment would take.
    pub fn of(facts: &Facts, needed: Option<Pages>) -> Option<Self> {
        match facts.segment.as_ref().map(|segment| segment.landing) {
            Some(Landing::Hugetlb) => return None,
            None | Some(Landing::Unknown) => return Some(Self::Unknown),
            Some(Landing::Thp | Landing::PartialThp | Landing::Mixed | Landing::Base) => {}
        }
        let room = facts.limits.as_ref().and_then(|limits| limits.tightest_reservation()).map(CgroupLimit::room);
        let left = |available: Pages| available.saturating_add(facts.own());
        let has = facts.pool.known().map(|pool| (pool.nr, pool.available().map(left)));
        Some(match Self::of_refusal(&facts.asked, needed, &facts.pool, has, room, facts.lock_limit) {
            // Nothing stands in the way now, so what was seen at the start is the best answer.
            Self::Unknown => facts.cause_at_start.unwrap_or(Self::Unknown),
            cause => cause,
        })
    }

    /// Why a server that asks for `needed` pages does not get them. `has`: the pages of the pool, and those that nobody
    /// else has or was promised. `room`: what a cgroup leaves to reserve. `lock_limit`: what it lacks to be let.
    pub fn of_refusal(
        asked: &Asked,
        needed: Option<Pages>,
        pool: &PoolFact,
        has: Option<(Pages, Option<Pages>)>,
        room: Option<Bytes>,
        lock_limit: Option<LockLimit>,
    ) -> Self {
        if asked.huge_pages == HugePages::Off {
            return Self::Disabled;
        }
        if matches!(asked.product, Product::Oracle { memory_target: true, .. }) {
            return Self::MemoryTarget;
        }
        if asked.sysv {
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

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disabled => "disabled",
            Self::MemoryTarget => "memory_target",
            Self::SysvSharedMemory => "sysv_shared_memory",
            Self::PageSizeUnsupported => "page_size_unsupported",
            Self::PoolEmpty => "pool_empty",
            Self::PoolTooSmall => "pool_too_small",
            Self::PoolTaken => "pool_taken",
            Self::CgroupLimit => "cgroup_limit",
            Self::MemlockLimit => "memlock_limit",
            Self::ShmGroup => "shm_group",
            Self::Unknown => "unknown",
        })
    }
}
