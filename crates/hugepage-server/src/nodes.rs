//! The NUMA nodes of a host, and which of them a server may use.

use hugepage_assess::model::{NodePools, PoolFact};
use hugepage_kernel::mapping::memory_policy::{MemoryPolicy, allowed_nodes};
use hugepage_kernel::memory::pool::{self, NodePool};
use hugepage_kernel::notes::Notes;
use hugepage_kernel::{Pages, Root};

/// The node pools of the process `pid`, or of `self`; `None` if the host has one node, or the pool has no pages.
pub fn of_process(
    root: &Root,
    pool: &PoolFact,
    pid: &str,
    policy: impl FnOnce(&mut Notes) -> MemoryPolicy,
    notes: &mut Notes,
) -> Option<NodePools> {
    let PoolFact::Known(pool) = pool else { return None };
    if pool.nr == Pages(0) || pool::has_single_node(root) || notes.keep(pool::nodes(root))?.len() < 2 {
        return None;
    }
    let pools = notes.keep(pool::node_pools(root, pool.page_size))?;
    if pools.len() < 2 {
        return None;
    }
    Some(complete(root, pools, pid, policy, notes))
}

/// The shares of a pool, with the nodes that the process `pid` may use.
pub fn complete(
    root: &Root,
    pools: Vec<NodePool>,
    pid: &str,
    policy: impl FnOnce(&mut Notes) -> MemoryPolicy,
    notes: &mut Notes,
) -> NodePools {
    let allowed = notes.keep(allowed_nodes(root, pid)).flatten();
    NodePools { pools, allowed, policy: policy(notes) }
}
