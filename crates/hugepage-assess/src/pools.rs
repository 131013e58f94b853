//! A pool with the columns that every output has.

use hugepage_facts::PoolRow;
use hugepage_kernel::{Bytes, Pages};

use crate::columns;

columns! {
    /// A pool, with the columns that SQL, JSON and Oracle have.
    PoolColumns(row: &PoolRow) where {
        let pool = &row.pool;
    } {
        page_size: Bytes = pool.page_size.bytes(),
        node: Option<u32> = row.node,
        is_default: bool = row.is_default,
        nr_hugepages: Pages = pool.nr,
        free_hugepages: Pages = pool.free,
        resv_hugepages: Option<Pages> = pool.resv,
        surplus_hugepages: Option<Pages> = pool.surplus,
        nr_overcommit_hugepages: Option<Pages> = pool.overcommit,
        available_hugepages: Option<Pages> = pool.available(),
        cgroup_limit: Option<Bytes> = row.limit.as_ref().map(|limit| limit.limit),
        cgroup_usage: Option<Bytes> = row.limit.as_ref().map(|limit| limit.usage),
    }
}
