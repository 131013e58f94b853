//! The huge pages of this host: `hugepage_pools`, `hugepage_nodes` and `hugepage_host`.

use hugepage_assess::columns::fields;
use hugepage_assess::pools::{self, PoolColumns};
use hugepage_assess::row;
use hugepage_kernel::Root;
use hugepage_server::kernel_facts;
use hugepage_server::placement::placement;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::rows;
use crate::{assessment, server};

/// One row for each page size.
#[pg_extern(sql = false)]
fn hugepage_pools(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, rows::declared!("pools.sql"), |notes| {
        let root = Root::live();
        let rows = server::with_hierarchy(&root, notes, |view, notes| hugepage_server::pools::rows(&root, view, notes));
        pools::of_host(&rows).map(|row| fields(&PoolColumns::new(row))).collect::<Vec<_>>()
    })
}

/// One row for each NUMA node, with the segment's pages there. No page is touched.
#[pg_extern(sql = false)]
fn hugepage_nodes(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, rows::declared!("nodes.sql"), |notes| {
        let root = Root::live();
        let status = assessment::now(&root, notes);
        let mapping = server::main_mapping(&root, notes);
        let postmaster = server::postmaster_in_proc().and_then(|pid| pid.parse().ok());
        let placement = placement(&root, &status, mapping.as_ref(), postmaster, &mut rows::check_for_cancel, notes);
        placement.map(|placement| placement.rows()).unwrap_or_default().into_iter().map(|row| {
            let of_node = row! {
                node: row.node,
                page_size: row.pool.page_size,
                memory: row.memory,
                segment_pages: row.segment,
                allowed: row.allowed,
            };
            of_node.into_iter().chain(pools::counters(Some(&row.pool)))
        })
    })
}

/// The kernel's settings and numbers, one row for each, with the file that it was read from.
#[pg_extern(sql = false)]
fn hugepage_host(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, rows::declared!("host.sql"), |notes| {
        let facts = kernel_facts::facts(&Root::live(), notes);
        facts
            .into_iter()
            .map(|fact| row! { name: fact.name, setting: fact.setting, unit: fact.unit, source: fact.source })
    })
}
