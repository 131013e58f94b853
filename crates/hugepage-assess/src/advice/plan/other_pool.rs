//! A pool of another page size that has enough for a server whose own pool has not: it takes no more memory from the host.

use hugepage_kernel::memory::pool::from_meminfo;
use hugepage_kernel::{PageSize, Pages};

use super::{Plan, Step, obstacle};
use crate::assessment::{Forecast, Status};
use crate::model::{Facts, Landing, OtherPool, Pending, PoolFact, PoolState, Product, Segment};

impl Step {
    /// Lets the next start ask for pages of the first other pool that has enough of them for certain, as far as limits are
    /// known; `None` if there is none.
    pub(super) fn to_other_pool(at: &Status) -> Option<Self> {
        let (requested, _, _) = obstacle::start(at);
        let is_pending = matches!(at.facts.pending, Pending::Changed(..));
        let is_able = requested.product == Product::PostgreSql && !requested.sysv;
        if !is_able || at.facts.landing() == Landing::Hugetlb && !is_pending {
            return None;
        }
        let size = match &at.facts.pending {
            Pending::Changed(demand, _) => demand.shared_memory,
            _ => at.facts.segment.as_ref()?.size,
        };
        let others = at.facts.other_pools.iter().filter(|other| other.can_be_set);
        others.into_iter().find_map(|other| {
            let page_size = other.pool_state.huge_page_size?;
            let forecast = Forecast::of_start(&requested, Some(size), &other.pool_state, Pages(0));
            let (available, needed) = (other.available()?, forecast.needed?);
            // A page of 1 GB for a small server is better left to a large one.
            let is_used = page_size.times(needed) <= size.saturating_add(size);
            (forecast.lands() && is_used && available >= needed).then_some(Self::SetHugePageSize {
                size: page_size,
                available,
                needed,
            })
        })
    }
}

impl OtherPool {
    /// The pages that no server has, and none that is seen needs.
    fn available(&self) -> Option<Pages> {
        Some(self.pool_state.pool.known()?.available()?.saturating_sub(self.others_lack.unwrap_or_default()))
    }
}

impl Status {
    /// The status as if the server asked for the page size that its hint tells to set, for all that is said of pools; `None` if
    /// the hint tells none.
    pub fn with_planned_page_size(&self) -> Option<Self> {
        let plan = Plan::of_finding(self, self.verdict().1)?;
        let step = plan.steps.into_iter().find(|step| matches!(step, Step::SetHugePageSize { .. }))?;
        Some(Self::assess(step.after(self.facts.clone())))
    }
}

impl Facts {
    /// The facts if the next start asked for pages of `size`; `None`: of the kernel's default size.
    pub(super) fn asking_for_size(self, size: Option<PageSize>) -> Self {
        let facts = self.asking_next(|requested| requested.huge_page_size = size);
        let default = facts.meminfo.as_ref().and_then(|meminfo| meminfo.huge_page_size);
        let of_size = |other: &&OtherPool| other.pool_state.huge_page_size == size.or(default);
        let other = facts.other_pools.iter().find(of_size);
        let pool_state = match other {
            Some(other) => other.pool_state.clone(),
            None => PoolState {
                huge_page_size: size.or(default),
                pool: facts.meminfo.as_ref().and_then(from_meminfo).map_or(PoolFact::Unknown, PoolFact::Known),
                limits: None,
                nodes: None,
                lock_limit: None,
            },
        };
        match facts.pending {
            Pending::Changed(demand, _) => Self { pending: Pending::Changed(demand, pool_state), ..facts },
            _ => Self {
                pool_state,
                // One mapping, which was rounded up to the other size.
                segment: facts.segment.map(|segment| Segment { to_reserve: segment.size, ..segment }),
                others_lack: other.map_or(facts.others_lack, |other| other.others_lack),
                next_boot: None,
                ..facts
            },
        }
    }
}
