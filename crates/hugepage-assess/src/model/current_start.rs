//! A running server as far as its next start is compared with it.

use hugepage_kernel::{Bytes, PageSize, Pages};

use crate::model::{Demand, Landing, Pending, PoolFact, Requested, Segment};

/// What a running server asked for when it started, and got.
#[derive(Clone, Copy, Debug)]
pub struct CurrentStart<'a> {
    /// The settings.
    pub requested: Requested,
    /// The running segment.
    pub segment: Option<&'a Segment>,
    /// The page size of its pool; as in [`PoolState`](crate::model::PoolState).
    pub huge_page_size: Option<PageSize>,
}

impl CurrentStart<'_> {
    /// Where the segment landed.
    pub fn landing(&self) -> Landing {
        self.segment.map_or(Landing::Unknown, |segment| segment.landing)
    }

    /// The page size of the running segment.
    pub fn page_size(&self) -> Option<PageSize> {
        self.segment?.page_size
    }

    /// The pages of the pool that the server has.
    pub fn own(&self) -> Pages {
        match (self.segment, self.huge_page_size) {
            (Some(segment), Some(page)) if segment.page_size == Some(page) => page.pages_to_hold(segment.in_huge_pages),
            _ => Pages(0),
        }
    }

    /// Whether the running server already has what a start with `demand` would ask for.
    pub fn is_met_by(&self, demand: &Demand) -> bool {
        let Some(segment) = self.segment else { return false };
        let size = match (segment.landing, segment.page_size) {
            (Landing::Hugetlb, Some(page)) => page.times(page.pages_to_hold(demand.shared_memory)),
            _ => demand.shared_memory,
        };
        demand.requested == self.requested && size == segment.size
    }

    /// The pages of `pool` that the next start asks for and the server has not; zero if that is unknown. With
    /// `shared_memory_type = sysv` those that it asks for with `mmap`, which is what the advice says to set.
    pub fn lack(&self, pending: &Pending, pool: &PoolFact) -> Pages {
        let size = match pending {
            Pending::Changed(demand, pool_state) if pool_state.huge_page_size == self.huge_page_size => {
                demand.shared_memory
            }
            _ => Bytes(0),
        };
        let wants = pending.may_request_next(self.requested) && !pending.requested_next(self.requested).is_in_files();
        let (Some(segment), Some(page), PoolFact::Known(_), true) = (self.segment, self.huge_page_size, pool, wants)
        else {
            return Pages(0);
        };
        page.pages_to_hold(segment.to_reserve.max(size)).saturating_sub(self.own())
    }
}
