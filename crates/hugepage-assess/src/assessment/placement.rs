//! Where the pages of a server's segment are, and the pool of each NUMA node.

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
        let here = |node| Some(self.segment.as_ref()?.get(&node).copied().unwrap_or_default());
        // The kernel counts reservations for the host; of a single node these are its own.
        let resv = self.pool.resv.filter(|_| self.nodes.pools.len() == 1);
        let row = |share: &NodePool| NodeRow {
            node: share.node,
            pool: Pool { resv: resv.or(share.pool.resv), ..share.pool.clone() },
            memory: share.memory,
            segment: here(share.node),
            allowed: self.nodes.allows(share.node),
        };
        self.nodes.pools.iter().map(row).collect()
    }
}

impl NodePools {
    /// Whether the server may use `node`; `None` if that can't be seen.
    fn allows(&self, node: u32) -> Option<bool> {
        match self.allowed.as_ref().map(|allowed| allowed.contains(&node)) {
            Some(true) if self.policy == MemoryPolicy::Unknown => None,
            Some(true) => Some(self.usable().iter().any(|share| share.node == node)),
            other => other,
        }
    }
}
