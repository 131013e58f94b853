//! All pools of a host: one for each page size, and the share of each NUMA node.

use hugepage_facts::PoolRow;
use hugepage_kernel::memory::pool::{self, Pool};
use hugepage_kernel::{Meminfo, Notes, Root};

use crate::{CgroupView, limits};

/// The pools in the order of page sizes, the host's before its nodes'.
pub fn rows(root: &Root, view: CgroupView<'_>, notes: &mut Notes) -> Vec<PoolRow> {
    let meminfo = notes.keep(Meminfo::read(root));
    let default = meminfo.as_ref().and_then(|meminfo| meminfo.huge_page_size);
    let row = |node, pool: Pool, limit| PoolRow {
        node,
        is_default: default == Some(pool.page_size),
        limit,
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
            let limit =
                limits(root, view, size, notes).and_then(|limits| limits.tightest().cloned());
            rows.push(row(None, pool, limit));
        }
        for node in notes.keep(pool::node_pools(root, size)).unwrap_or_default() {
            rows.push(row(Some(node.node), node.pool, None));
        }
    }
    rows
}
