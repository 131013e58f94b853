//! Whether the NUMA nodes that a server may use have the huge pages that it needs, and where its pages are.
//!
//! The kernel refuses a reservation that exceeds the free pages of the allowed nodes (`hugetlb_acct_memory` in mm/hugetlb.c).

use std::collections::BTreeMap;

use hugepage_kernel::mapping::memory_policy::MemoryPolicy;
use hugepage_kernel::memory::pool::{NodePool, Pool};
use hugepage_kernel::{Bytes, Pages};

use crate::assessment::Start;
use crate::model::{NodePools, PoolFact};

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

impl NodeRoom {
    /// The pages that the nodes have, if they are too few.
    pub const fn shortage(self) -> Option<Pages> {
        if let Self::Short(pages) = self {
            Some(pages)
        } else {
            None
        }
    }
}

impl Start<'_> {
    /// What the nodes that it may use have for it.
    pub fn node_room(&self) -> NodeRoom {
        let found = self.pool_state;
        let (Some(nodes), PoolFact::Known(pool), Some(needed)) =
            (&found.nodes, &found.pool, self.needed())
        else {
            return NodeRoom::Enough;
        };
        let usable = nodes.usable();
        let bounds = |shares: &[&NodePool]| {
            let all = sum(&nodes.pools.iter().collect::<Vec<_>>(), |pool| pool.nr);
            let lasting = sum(shares, Pool::persistent);
            // Nodes without pages are no restriction.
            if sum(shares, |pool| pool.nr) == all {
                return (lasting, lasting);
            }
            // The most that other processes can have on these nodes.
            let here = sum(shares, |pool| pool.nr.saturating_sub(pool.free));
            let others = pool.in_use().unwrap_or(pool.nr).saturating_sub(self.own);
            let others = others.min(here.saturating_add(pool.promised().unwrap_or(pool.nr)));
            let free = sum(shares, |pool| pool.free);
            (
                lasting.saturating_sub(others),
                lasting.min(free.saturating_add(self.own)),
            )
        };
        let (low, high) = bounds(&usable);
        if high < needed && nodes.is_restricted() {
            return NodeRoom::Short(high);
        }
        if low < needed && nodes.is_restricted() {
            return NodeRoom::Unknown;
        }
        let counts = || usable.iter().map(|share| share.pool.persistent());
        let differ = counts().max().unwrap_or_default()
            > counts().min().unwrap_or_default().saturating_add(Pages(1));
        // A policy that can't be seen may allow one node alone.
        match nodes.may_be_fewer()
            && differ
            && usable.iter().any(|share| bounds(&[share]).0 < needed)
        {
            true => NodeRoom::Unknown,
            false => NodeRoom::Enough,
        }
    }
}

impl NodePools {
    /// The pages that the allowed nodes keep when nobody uses them; `None` if the server may use all nodes.
    pub fn persistent(&self) -> Option<Pages> {
        self.is_restricted()
            .then(|| sum(&self.usable(), Pool::persistent))
    }

    /// Whether the server may use `node`; `None` if that can't be seen.
    fn allows(&self, node: u32) -> Option<bool> {
        match self.allowed.as_ref().map(|allowed| allowed.contains(&node)) {
            Some(true) if self.policy == MemoryPolicy::Unknown => None,
            Some(true) => Some(self.usable().iter().any(|share| share.node == node)),
            other => other,
        }
    }
}

fn sum(shares: &[&NodePool], count: impl Fn(&Pool) -> Pages) -> Pages {
    shares.iter().fold(Pages(0), |sum, share| {
        sum.saturating_add(count(&share.pool))
    })
}

/// A host's nodes as one server sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The host's pool of the server's page size.
    pub pool: Pool,
    /// The shares of the pool by node.
    pub nodes: NodePools,
    /// The segment's touched pages by node, as far as they were found; `None` if the kernel does not say.
    pub segment: Option<BTreeMap<u32, Pages>>,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// The number of the node.
    pub node: u32,
    /// The share of the pool; the reservations of the host where it is the only node.
    pub pool: Pool,
    /// The memory of the node.
    pub memory: Option<Bytes>,
    /// The segment's pages there.
    pub segment: Option<Pages>,
    /// Whether the server may use it; `None` if that can't be seen.
    pub allowed: Option<bool>,
}

impl Placement {
    /// The nodes, ascending.
    pub fn rows(&self) -> Vec<NodeRow> {
        let here = |node| {
            Some(
                self.segment
                    .as_ref()?
                    .get(&node)
                    .copied()
                    .unwrap_or_default(),
            )
        };
        // The kernel counts reservations for the host; of a single node these are its own.
        let resv = self.pool.resv.filter(|_| self.nodes.pools.len() == 1);
        let row = |share: &NodePool| NodeRow {
            node: share.node,
            pool: Pool {
                resv: resv.or(share.pool.resv),
                ..share.pool.clone()
            },
            memory: share.memory,
            segment: here(share.node),
            allowed: self.nodes.allows(share.node),
        };
        self.nodes.pools.iter().map(row).collect()
    }
}
