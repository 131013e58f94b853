//! Where the pages of a server's segment are, and what a start would find on each NUMA node.

use std::collections::BTreeMap;

use hugepage_kernel::mapping::memory_policy::MemoryPolicy;
use hugepage_kernel::memory::pool::{NodePool, Pool};
use hugepage_kernel::{Bytes, Pages};

use crate::model::NodePools;

/// A host's nodes as one server sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The host's pool of the server's page size.
    pub pool: Pool,
    /// The shares of the pool by node.
    pub nodes: NodePools,
    /// The pages that the server has in it, touched or reserved.
    pub own: Pages,
    /// The pages of that size that the next start needs; `None` if unknown.
    pub needed: Option<Pages>,
    /// The segment's touched pages by node, as far as they were found; `None` if the kernel does not say.
    pub segment: Option<BTreeMap<u32, Pages>>,
    /// The hundredths of a node's memory that stay in base pages.
    pub reserve_percent: u32,
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
    /// The pages that a start of the server would find there, once it has stopped; `None` where that depends on the
    /// nodes of pages that other processes have or were promised.
    pub restart: Option<Pages>,
    /// What is uneven about it.
    pub imbalance: Option<Imbalance>,
}

/// A node has much more or less than the others that the server may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Imbalance {
    /// More than one and a half times its even share of the segment's pages.
    Segment {
        /// The pages there.
        here: Pages,
        /// All pages whose node is known.
        known: Pages,
        /// The even share of them.
        even: Pages,
    },
    /// The pool has enough pages, but this node less than its even share of what the server needs.
    Pool {
        /// What a start would find there.
        found: Pages,
        /// The even share.
        even: Pages,
        /// The size of its pool with which it has that; `None` if its memory can't hold it.
        target: Option<Pages>,
    },
}

impl Placement {
    /// The nodes, ascending.
    pub fn rows(&self) -> Vec<NodeRow> {
        let usable: Vec<_> = self.nodes.usable().iter().map(|share| share.node).collect();
        let found: Vec<_> = self.nodes.pools.iter().map(|share| self.restart(share, &usable)).collect();
        let of_usable = self.nodes.pools.iter().zip(&found).filter(|(share, _)| usable.contains(&share.node));
        let all = of_usable.map(|(_, found)| *found).sum::<Option<u64>>();
        let row = |(share, found): (&NodePool, &Option<u64>)| NodeRow {
            node: share.node,
            pool: self.with_reservations(&share.pool),
            memory: share.memory,
            segment: self.here(share.node),
            allowed: self.allowed(share.node, &usable),
            restart: found.map(Pages),
            imbalance: usable
                .contains(&share.node)
                .then(|| {
                    self.of_pool(share, *found, all, usable.len()).or_else(|| self.of_segment(share.node, &usable))
                })
                .flatten(),
        };
        self.nodes.pools.iter().zip(&found).map(row).collect()
    }

    /// The nodes that the server may use, as far as that is known.
    pub fn usable(&self) -> Vec<u32> {
        self.nodes.usable().iter().map(|share| share.node).collect()
    }

    fn here(&self, node: u32) -> Option<Pages> {
        Some(self.segment.as_ref()?.get(&node).copied().unwrap_or_default())
    }

    /// The kernel counts reservations for the host; of a single node these are its own.
    fn with_reservations(&self, pool: &Pool) -> Pool {
        let is_only = self.nodes.pools.len() == 1;
        Pool { resv: if is_only { self.pool.resv } else { pool.resv }, ..pool.clone() }
    }

    fn allowed(&self, node: u32, usable: &[u32]) -> Option<bool> {
        let by_cpuset = self.nodes.allowed.as_ref().map(|allowed| allowed.contains(&node));
        match by_cpuset {
            Some(true) if self.nodes.policy == MemoryPolicy::Unknown => None,
            Some(true) => Some(usable.contains(&node)),
            other => other,
        }
    }

    /// What others can at least and at most have on the node, from the pages that they have in all.
    fn restart(&self, share: &NodePool, usable: &[u32]) -> Option<u64> {
        if !usable.contains(&share.node) {
            return Some(0);
        }
        let others = self.pool.in_use()?.saturating_sub(self.own);
        let promised = self.pool.promised()?;
        // Touched by others, or by this server in a place that was not found.
        let of_others = |share: &NodePool| {
            let touched = share.pool.nr.saturating_sub(share.pool.free);
            Some(touched.saturating_sub(self.here(share.node)?))
        };
        let elsewhere = self.nodes.pools.iter().filter(|other| other.node != share.node);
        let mut room = if self.nodes.pools.len() > 1 { promised } else { Pages(0) };
        for other in elsewhere {
            room = room.saturating_add(of_others(other)?);
        }
        let most = others.min(of_others(share)?.saturating_add(promised));
        let least = others.saturating_sub(room);
        let persistent = share.pool.persistent();
        let (low, high) = (persistent.saturating_sub(most), persistent.saturating_sub(least));
        (low == high).then_some(low.0)
    }

    fn of_pool(&self, share: &NodePool, found: Option<u64>, all: Option<u64>, nodes: usize) -> Option<Imbalance> {
        let (found, needed) = (Pages(found?), self.needed?);
        let even = even(needed, nodes);
        // A pool that is too small for the server is no matter of nodes.
        if found >= even || all? < needed.0 {
            return None;
        }
        let target = share.pool.persistent().saturating_add(even.saturating_sub(found));
        let fits = share.memory.is_none_or(|memory| {
            self.pool.page_size.times(target) <= memory.saturating_sub(memory.percent(self.reserve_percent))
        });
        Some(Imbalance::Pool { found, even, target: fits.then_some(target) })
    }

    /// Only once a quarter of the segment was found, and enough pages that one more or less does not matter.
    fn of_segment(&self, node: u32, usable: &[u32]) -> Option<Imbalance> {
        let known = self.segment.as_ref()?.values().fold(Pages(0), |sum, pages| sum.saturating_add(*pages));
        let (here, even) = (self.here(node)?, even(known, usable.len()));
        let is_enough = known.0.saturating_mul(4) >= self.own.0 && even.0 >= 8;
        let is_uneven = here.0.saturating_mul(2) > even.0.saturating_mul(3);
        (is_enough && is_uneven).then_some(Imbalance::Segment { here, known, even })
    }
}

fn even(pages: Pages, nodes: usize) -> Pages {
    Pages(pages.0.div_ceil(nodes.max(1) as u64))
}
