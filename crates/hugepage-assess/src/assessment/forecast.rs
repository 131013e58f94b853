//! What a start of the server with given settings would get, exact to the page.

use hugepage_kernel::{Bytes, PageSize, Pages};
use serde::{Deserialize, Serialize};

use crate::assessment::{Outlook, Share};
use crate::model::{Cause, Facts, HugePages, Landing, LockLimit, PoolFact, PoolState, Requested};

/// The outcome of a start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forecast {
    /// Where the segment would land.
    pub outlook: Outlook,
    /// The huge page size that the start asks for.
    pub huge_page_size: Option<PageSize>,
    /// Pages of that size that the segment takes.
    pub needed: Option<Pages>,
    /// Pages that are certainly available once the server has stopped, after cgroup limits.
    pub guaranteed: Option<Pages>,
    /// The needed pages that are missing.
    pub missing: Option<Pages>,
    /// Why the start would not get what it asks for; `None` if it would.
    pub cause: Option<Cause>,
}

impl Forecast {
    /// Forecasts a start that asks for `requested` and a segment of `size`, of a server that has `own` pages of that pool now.
    pub fn of_start(requested: &Requested, size: Option<Bytes>, pool_state: &PoolState, own: Pages) -> Self {
        let PoolState { huge_page_size, pool, lock_limit, .. } = pool_state;
        let supported = !matches!(pool, PoolFact::Unsupported(..));
        let needed = huge_page_size.filter(|_| supported).zip(size).map(|(page, size)| page.pages_to_hold(size));
        let outlook = Outlook::of_start(requested, needed, own, pool_state);

        let share = pool.known().and_then(|pool| Share::of_server(pool, own));
        let on_nodes =
            needed.and_then(|needed| pool_state.node_room(needed, own).shortage()).unwrap_or(Pages(u64::MAX));
        let guaranteed = share.map(|share| share.guaranteed.min(pool_state.allowed(own)).min(on_nodes));
        let cause = match (outlook, lock_limit) {
            (Outlook::Hugetlb, _) => {
                let is_exceeded = |needed| !pool_state.excesses(needed, own).is_empty();
                needed.is_some_and(is_exceeded).then_some(Cause::CgroupLimit)
            }
            (_, Some(limit)) if limit.prevents_start() => Some(limit.cause()),
            _ => {
                let has = share.map(|share| (share.persistent, Some(share.guaranteed)));
                Some(Cause::of_refusal(requested, needed, pool_state, has, own))
            }
        };
        let missing = needed.zip(guaranteed).map(|(needed, guaranteed)| needed.saturating_sub(guaranteed));
        Self { outlook, huge_page_size: *huge_page_size, needed, guaranteed, missing, cause }
    }

    /// For a configuration that could not be determined.
    pub const fn unknown() -> Self {
        let outlook = Outlook::Unknown;
        Self { outlook, huge_page_size: None, needed: None, guaranteed: None, missing: None, cause: None }
    }

    /// Why the outlook is unknown, for notes: the pages that are not guaranteed are surplus pages. `None` if it is known, and
    /// where another note says what could not be read. `start`: what happens, such as "a restart".
    pub fn note_on_surplus(&self, start: &str) -> Option<String> {
        let (needed, guaranteed, size) = (self.needed?, self.guaranteed?, self.huge_page_size?);
        (self.outlook == Outlook::Unknown && guaranteed < needed).then(|| {
            format!(
                "whether {start} gets huge pages depends on surplus pages (nr_overcommit_hugepages), which the kernel may be \
                 unable to provide: {guaranteed} of the {needed} pages of {size} needed are guaranteed"
            )
        })
    }

    /// Whether the server would start; `None` if that is unknown, as of a start whose io_uring rings the kernel may refuse.
    pub fn will_start(&self, requested: &Requested) -> Option<bool> {
        match self.outlook {
            Outlook::Fails => Some(false),
            _ if requested.io_uring => None,
            Outlook::Hugetlb | Outlook::Mixed | Outlook::Base => Some(true),
            Outlook::Unknown => (requested.huge_pages != HugePages::On).then_some(true),
        }
    }
}

impl Cause {
    /// `None` if the segment is in huge pages. `needed`: the pages that the segment takes or would take.
    pub fn of_server(facts: &Facts, needed: Option<Pages>) -> Option<Self> {
        match facts.landing() {
            Landing::Hugetlb => return None,
            Landing::Unknown => return Some(Self::Unknown),
            Landing::Thp | Landing::PartialThp | Landing::Mixed | Landing::Base => {}
        }
        let left = |available: Pages| available.saturating_add(facts.own());
        let has = facts.pool_state.pool.known().map(|pool| (pool.nr, pool.available().map(left)));
        Some(match Self::of_refusal(&facts.requested, needed, &facts.pool_state, has, facts.own()) {
            // Nothing prevents huge pages now, so the cause that was seen at the start is the best answer.
            Self::Unknown => facts.past.cause_at_start.unwrap_or(Self::Unknown),
            cause => cause,
        })
    }

    /// Why a server with `own` pages that asks for `needed` does not get them. `has`: the pages of the pool, and those of them
    /// that no other process uses or has reserved.
    fn of_refusal(
        requested: &Requested,
        needed: Option<Pages>,
        pool_state: &PoolState,
        has: Option<(Pages, Option<Pages>)>,
        own: Pages,
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
        let (page_size, needed, (all, left)) = match (&pool_state.pool, needed, has) {
            (PoolFact::Unsupported(..), ..) => return Self::PageSizeUnsupported,
            (PoolFact::Known(pool), Some(needed), Some(has)) => (pool.page_size, needed, has),
            _ => return Self::Unknown,
        };
        let refusal = pool_state.lock_limit.filter(|limit| limit.refuses(page_size.times(needed)));
        match (left, refusal.map_or(Self::Unknown, LockLimit::cause)) {
            _ if all == Pages(0) => Self::PoolEmpty,
            _ if all < needed => Self::PoolTooSmall,
            (Some(left), _) if left < needed => Self::PoolTaken,
            _ if pool_state.allowed(own) < needed => Self::CgroupLimit,
            (_, Self::Unknown) if pool_state.node_room(needed, own).shortage().is_some() => Self::NodeLimit,
            (_, cause) => cause,
        }
    }
}
