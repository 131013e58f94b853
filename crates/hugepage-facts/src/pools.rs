//! All pools of a host as rows: one for each page size, and the share of each NUMA node.

use hugepage_kernel::cgroups::cgroup::CgroupLimit;
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::{Bytes, PageSize};
use serde::{Deserialize, Serialize};

/// A pool, or a node's share of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolRow {
    /// NUMA node; `None` for the whole host.
    pub node: Option<u32>,
    /// Whether its page size is the kernel's default.
    pub is_default: bool,
    /// The counters.
    pub pool: Pool,
    /// The cgroup limit with the least room; `None` if there is none, if none is visible, and for a node.
    pub limit: Option<CgroupLimit>,
}

/// The rows of the whole host, without those of its nodes.
pub fn of_host(rows: &[PoolRow]) -> impl Iterator<Item = &PoolRow> + Clone {
    rows.iter().filter(|row| row.node.is_none())
}

/// The host's pool of one size; `None` if there is none.
pub fn of_size(rows: &[PoolRow], size: PageSize) -> Option<&PoolRow> {
    of_host(rows).find(|row| row.pool.page_size == size)
}

/// The memory of these pools.
pub fn memory<'a>(rows: impl Iterator<Item = &'a PoolRow>) -> Bytes {
    rows.fold(Bytes(0), |sum, row| {
        sum.saturating_add(row.pool.page_size.times(row.pool.nr))
    })
}
