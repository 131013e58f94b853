//! A pool of another page size that has enough pages, if the server's own pool has not: it takes no more memory from the host.

use hugepage_kernel::memory::pool::from_meminfo;
use hugepage_kernel::{PageSize, Pages};

use super::start::Start;
use super::{Plan, Step};
use crate::assessment::{Outlook, Status};
use crate::model::{Facts, Landing, OtherPool, Pending, PoolFact, PoolState, Segment};

/// The first other pool that has enough pages for certain, as far as limits are known, and `start` with pages of that size.
pub fn enough(status: &Status, start: &Start) -> Option<(Step, Start)> {
    let facts = &status.facts;
    let is_pending = matches!(facts.pending, Pending::Changed(..));
    if facts.landing() == Landing::Hugetlb && !is_pending {
        return None;
    }
    facts.other_pools.iter().filter(|other| other.can_be_set).find_map(|other| {
        let start = with(start, other.pool_state.huge_page_size?, other.pool_state.clone());
        let forecast = start.forecast();
        let (size, available, needed) = (forecast.huge_page_size?, other.available()?, forecast.needed?);
        // A page of 1 GB for a small server is better left to a large one.
        let is_used = size.times(needed) <= start.size.saturating_add(start.size);
        let lands = forecast.outlook == Outlook::Hugetlb
            // All that can be seen is there.
            || forecast.outlook == Outlook::Unknown && forecast.missing == Some(Pages(0));
        let step = Step::SetHugePageSize { size, available, needed };
        (lands && is_used && available >= needed && !other.is_wasted_on(needed)).then_some((step, start))
    })
}

/// `start` with pages of the kernel's default size; `None` if that is what it asks for.
pub fn default_size(status: &Status, start: &Start) -> Option<(Step, Start)> {
    start.requested.huge_page_size?;
    let mut start = with(start, status.facts.meminfo.as_ref()?.huge_page_size?, status.facts.pool_of_size(None));
    start.requested.huge_page_size = None;
    Some((Step::SetDefaultPageSize, start))
}

/// `start` with pages of `size`: one mapping, of which the running server has nothing.
fn with(start: &Start, size: PageSize, pool_state: PoolState) -> Start {
    let mut start = Start { pool_state, to_reserve: start.size, own: Pages(0), ..start.clone() };
    start.requested.huge_page_size = Some(size);
    start
}

impl OtherPool {
    /// The pages that no server has, and none that is seen needs.
    fn available(&self) -> Option<Pages> {
        Some(self.pool_state.pool.known()?.available()?.saturating_sub(self.others_lack.unwrap_or_default()))
    }

    /// Whether it would be called too large with one more server that needs so many pages.
    fn is_wasted_on(&self, needed: Pages) -> bool {
        let (Some(lack), Some(pool)) = (self.others_lack, self.pool_state.pool.known()) else { return false };
        let all = pool.in_use().unwrap_or_default().saturating_add(lack).saturating_add(needed);
        pool.persistent() >= all.saturating_add(all)
    }
}

impl Status {
    /// The status as if the server asked for the page size that its hint sets, for what is said of pools; `None` if it sets none.
    pub fn with_planned_page_size(&self) -> Option<Self> {
        let plan = Plan::of_finding(self, self.verdict().1)?;
        let size = plan.steps.into_iter().find_map(|step| match step {
            Step::SetHugePageSize { size, .. } => Some(size),
            _ => None,
        })?;
        Some(Self::assess(self.facts.clone().asking_for_size(Some(size))))
    }
}

impl Facts {
    /// The facts if the next start asked for pages of `size`; `None`: of the kernel's default size.
    pub fn asking_for_size(mut self, size: Option<PageSize>) -> Self {
        let found = self.pool_of_size(size);
        if let Pending::Changed(demand, pool_state) = &mut self.pending {
            (demand.requested.huge_page_size, *pool_state) = (size, found);
            return self;
        }
        let other = self.other_pools.iter().find(|other| other.pool_state.huge_page_size == found.huge_page_size);
        self.others_lack = other.map_or(self.others_lack, |other| other.others_lack);
        (self.requested.huge_page_size, self.pool_state, self.next_boot) = (size, found, None);
        // One mapping, which was rounded up to the other size.
        self.segment = self.segment.map(|segment| Segment { to_reserve: segment.size, ..segment });
        self
    }

    /// The pool of another `size`, as far as it is known; `None`: of the kernel's default size.
    fn pool_of_size(&self, size: Option<PageSize>) -> PoolState {
        let size = size.or(self.meminfo.as_ref().and_then(|meminfo| meminfo.huge_page_size));
        if let Some(other) = self.other_pools.iter().find(|other| other.pool_state.huge_page_size == size) {
            return other.pool_state.clone();
        }
        let pool = self.meminfo.as_ref().and_then(from_meminfo).map_or(PoolFact::Unknown, PoolFact::Known);
        PoolState { huge_page_size: size, pool, limits: None, nodes: None, lock_limit: None }
    }
}
