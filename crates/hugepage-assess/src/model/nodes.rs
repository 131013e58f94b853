//! The shares of the NUMA nodes in a pool, and which of them a server may use.

use hugepage_kernel::mapping::memory_policy::MemoryPolicy;
use hugepage_kernel::memory::pool::NodePool;
use serde::{Deserialize, Serialize};

/// A pool of a host with several NUMA nodes, by node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePools {
    /// The share of each node.
    pub pools: Vec<NodePool>,
    /// The nodes that the server's cpuset allows; `None` if unknown.
    pub allowed: Option<Vec<u32>>,
    /// Which of those its memory policy allows.
    pub policy: MemoryPolicy,
}

impl NodePools {
    /// The shares that the server may use, as far as that is known: without a known cpuset or policy those of all nodes.
    pub fn usable(&self) -> Vec<&NodePool> {
        let by_cpuset = |share: &&NodePool| self.allowed.as_ref().is_none_or(|nodes| nodes.contains(&share.node));
        let allowed: Vec<_> = self.pools.iter().filter(by_cpuset).collect();
        let MemoryPolicy::Bind(bound) = &self.policy else { return allowed };
        let both: Vec<_> = allowed.iter().copied().filter(|share| bound.contains(&share.node)).collect();
        // The kernel passes over a policy that has no allowed node (policy_mbind_nodemask in mm/hugetlb.c).
        if both.is_empty() { allowed } else { both }
    }

    /// Whether nodes may be forbidden that are not known to be.
    pub fn may_be_fewer(&self) -> bool {
        self.allowed.is_none() || self.policy == MemoryPolicy::Unknown
    }

    /// Whether the server is known to be kept from a node.
    pub fn is_restricted(&self) -> bool {
        self.usable().len() < self.pools.len()
    }
}
