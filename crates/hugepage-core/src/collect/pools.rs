//! All pools of a host: one for each page size, and the share of each NUMA node.

use crate::collect::{CgroupView, limits};
use crate::notes::Notes;
use crate::read::cgroup::CgroupLimit;
use crate::read::meminfo::Meminfo;
use crate::read::pool::{self, Pool};
use crate::read::{Root, buddyinfo};
use crate::{Bytes, PageSize, Pages};

/// A pool, or a node's share of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolRow {
    /// NUMA node; `None` for the whole host.
    pub node: Option<u32>,
    /// Whether its page size is the kernel's default.
    pub is_default: bool,
    /// The counters.
    pub pool: Pool,
    /// The cgroup limit with the least room; `None` where there is none, where none is visible, and for a node.
    pub limit: Option<CgroupLimit>,
    /// How many more pages the kernel could make from free memory without compaction; `None` for pages larger than the
    /// buddy allocator's largest block.
    pub obtainable_now: Option<Pages>,
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
    rows.fold(Bytes(0), |sum, row| sum.saturating_add(row.pool.page_size.times(row.pool.nr)))
}

/// The pools in the order of page sizes, the host's before its nodes'.
pub fn rows(root: &Root, view: CgroupView<'_>, notes: &mut Notes) -> Vec<PoolRow> {
    let meminfo = notes.keep(Meminfo::read(root));
    let default = meminfo.as_ref().and_then(|meminfo| meminfo.huge_page_size);
    let zones = notes.keep(buddyinfo::read(root));
    let base = notes.keep(root.base_page_size());
    let obtainable = |node, size| buddyinfo::ready(zones.as_deref()?, node, size, base?);
    let row = |node, pool: Pool, limit| PoolRow {
        node,
        is_default: default == Some(pool.page_size),
        limit,
        obtainable_now: obtainable(node, pool.page_size),
        pool,
    };

    let Some(sizes) = notes.keep(pool::sizes(root)) else {
        // On a kernel before 2.6.27, or with a hidden /sys, only the default size is known.
        let pool = meminfo.as_ref().and_then(pool::from_meminfo);
        return pool.into_iter().map(|pool| row(None, pool, None)).collect();
    };
    // A tree of files stays as it is while it is read.
    let changing = meminfo.as_ref().filter(|_| root.is_live());
    let mut rows = Vec::new();
    for size in sizes {
        if let Some(pool) = notes.keep(pool::of_one_moment(root, size, changing)) {
            let limit = limits(root, view, size, notes).and_then(|limits| limits.tightest().cloned());
            rows.push(row(None, pool, limit));
        }
        for node in notes.keep(pool::node_pools(root, size)).unwrap_or_default() {
            rows.push(row(Some(node.node), node.pool, None));
        }
    }
    rows
}
