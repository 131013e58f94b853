//! Whether the NUMA nodes that a server may use have the huge pages that it needs.
//!
//! The kernel refuses a reservation that exceeds the free pages of the allowed nodes (`hugetlb_acct_memory` in mm/hugetlb.c).

use hugepage_kernel::Pages;
use hugepage_kernel::memory::pool::{NodePool, Pool};

use crate::model::{Facts, NodePools, PoolFact, PoolState};

/// What the allowed nodes have for a server once it has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeRoom {
    /// All that it needs.
    Enough,
    /// Only so many pages.
    Short(Pages),
    /// Enough or not, by where other processes have their pages, or on a policy that can't be seen.
    Unknown,
}

impl NodePools {
    /// For `needed` pages of a server that has `own` pages now, in `pool`.
    pub fn room(&self, pool: &Pool, needed: Pages, own: Pages) -> NodeRoom {
        let usable = self.usable();
        let bounds = |shares: &[&NodePool]| {
            let all = sum(&self.pools.iter().collect::<Vec<_>>(), |pool| pool.nr);
            let lasting = sum(shares, Pool::persistent);
            // Nodes without pages are no restriction.
            if sum(shares, |pool| pool.nr) == all {
                return (lasting, lasting);
            }
            let free = sum(shares, |pool| pool.free);
            let low = lasting.saturating_sub(self.others(pool, own, shares));
            (low, lasting.min(free.saturating_add(own)))
        };
        let (low, high) = bounds(&usable);
        if high < needed && self.is_restricted() {
            return NodeRoom::Short(high);
        }
        if low < needed && self.is_restricted() {
            return NodeRoom::Unknown;
        }
        let counts = || usable.iter().map(|share| share.pool.persistent());
        let differ = counts().max().unwrap_or_default() > counts().min().unwrap_or_default().saturating_add(Pages(1));
        // A policy that can't be seen may allow one node alone.
        match self.may_be_fewer() && differ && usable.iter().any(|share| bounds(&[share]).0 < needed) {
            true => NodeRoom::Unknown,
            false => NodeRoom::Enough,
        }
    }

    /// The pages that the allowed nodes keep when nobody uses them; `None` if the server may use all nodes.
    pub fn persistent(&self) -> Option<Pages> {
        self.is_restricted().then(|| sum(&self.usable(), Pool::persistent))
    }

    /// The most that processes other than a server with `own` pages can have on these nodes.
    fn others(&self, pool: &Pool, own: Pages, shares: &[&NodePool]) -> Pages {
        let all = pool.in_use().unwrap_or(pool.nr).saturating_sub(own);
        let here = sum(shares, |pool| pool.nr.saturating_sub(pool.free));
        all.min(here.saturating_add(pool.promised().unwrap_or(pool.nr)))
    }
}

impl PoolState {
    /// For a start that needs `needed` pages of a server that has `own` of the pool now.
    pub fn node_room(&self, needed: Pages, own: Pages) -> NodeRoom {
        match (&self.nodes, &self.pool) {
            (Some(nodes), PoolFact::Known(pool)) => nodes.room(pool, needed, own),
            _ => NodeRoom::Enough,
        }
    }
}

impl Facts {
    /// For the running segment, which needs `needed` pages; `None` if no node can matter.
    pub fn node_room(&self, needed: Pages) -> Option<NodeRoom> {
        Some(self.pool_state.nodes.as_ref()?.room(self.pool_state.pool.known()?, needed, self.own()))
    }
}

fn sum(shares: &[&NodePool], count: impl Fn(&Pool) -> Pages) -> Pages {
    shares.iter().fold(Pages(0), |sum, share| sum.saturating_add(count(&share.pool)))
}
