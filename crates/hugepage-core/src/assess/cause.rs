//! Why a segment is not in huge pages, worked out from what the server asked and what the host has.

use std::fmt;

use crate::Pages;
use crate::assess::facts::{Facts, HugePages, PoolFact};
use crate::assess::landing::Landing;

/// Why shared memory is not as asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// `huge_pages = off`.
    Disabled,
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
    /// Nothing of what can be seen explains it (any more).
    Unknown,
}

impl Cause {
    /// `None` where the segment is in huge pages. `needed`: the pages that the segment would take.
    pub fn of(facts: &Facts, needed: Option<Pages>) -> Option<Self> {
        match facts.segment.as_ref().map(|segment| segment.landing) {
            Some(Landing::Hugetlb) => return None,
            None | Some(Landing::Unknown) => return Some(Self::Unknown),
            Some(Landing::Thp | Landing::PartialThp | Landing::Base) => {}
        }
        if facts.asked.huge_pages == HugePages::Off {
            return Some(Self::Disabled);
        }
        if facts.asked.sysv {
            return Some(Self::SysvSharedMemory);
        }
        let (pool, needed) = match (&facts.pool, needed) {
            (PoolFact::Unsupported(..), _) => return Some(Self::PageSizeUnsupported),
            (PoolFact::Known(pool), Some(needed)) => (pool, needed),
            _ => return Some(Self::Unknown),
        };
        Some(match pool.available() {
            _ if pool.nr == Pages(0) => Self::PoolEmpty,
            _ if pool.nr < needed => Self::PoolTooSmall,
            Some(available) if available < needed => Self::PoolTaken,
            _ => match facts.limits.as_ref().and_then(|limits| limits.tightest_reservation()) {
                Some(limit) if limit.room() < pool.page_size.times(needed) => Self::CgroupLimit,
                // Nothing stands in the way now, so what was seen at the start is the best answer.
                _ => facts.cause_at_start.unwrap_or(Self::Unknown),
            },
        })
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disabled => "disabled",
            Self::SysvSharedMemory => "sysv_shared_memory",
            Self::PageSizeUnsupported => "page_size_unsupported",
            Self::PoolEmpty => "pool_empty",
            Self::PoolTooSmall => "pool_too_small",
            Self::PoolTaken => "pool_taken",
            Self::CgroupLimit => "cgroup_limit",
            Self::Unknown => "unknown",
        })
    }
}
