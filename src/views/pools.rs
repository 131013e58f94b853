//! `hugepage_pools`: one row for each page size of the host, and for each page size of a NUMA node.

use hugepage_core::collect::pools;
use hugepage_core::notes::Notes;
use hugepage_core::read::Root;
use pgrx::prelude::*;

use super::convert::{ToBigint, bigint};
use crate::{memory, server, session_notes};

pgrx::extension_sql_file!("pools.sql", name = "pools", requires = [hugepage_pools]);

#[pg_extern(volatile, parallel_restricted)]
#[allow(clippy::type_complexity)]
fn hugepage_pools() -> TableIterator<
    'static,
    (
        name!(page_size, i64),
        name!(node, Option<i32>),
        name!(is_default, bool),
        name!(nr_hugepages, i64),
        name!(free_hugepages, i64),
        name!(resv_hugepages, Option<i64>),
        name!(surplus_hugepages, Option<i64>),
        name!(nr_overcommit_hugepages, Option<i64>),
        name!(available, Option<i64>),
        name!(cgroup_limit, Option<i64>),
        name!(cgroup_usage, Option<i64>),
        name!(obtainable_now, Option<i64>),
    ),
> {
    memory::with_reserve(memory::USUAL, || {
        let root = Root::live();
        let mut notes = Notes::default();
        let rows = server::with_hierarchy(&root, &mut notes, |view, notes| pools::rows(&root, view, notes));
        session_notes::replace("hugepage_pools", notes);
        TableIterator::new(rows.into_iter().map(|row| {
            (
                row.pool.page_size.bigint(),
                row.node.and_then(|node| i32::try_from(node).ok()),
                row.is_default,
                row.pool.nr.bigint(),
                row.pool.free.bigint(),
                bigint(row.pool.resv),
                bigint(row.pool.surplus),
                bigint(row.pool.overcommit),
                bigint(row.pool.available()),
                bigint(row.limit.as_ref().map(|limit| limit.limit)),
                bigint(row.limit.as_ref().map(|limit| limit.usage)),
                bigint(row.obtainable_now),
            )
        }))
    })
}
