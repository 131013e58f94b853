//! `hugepage_nodes`: one row for each NUMA node, with the segment's pages there. No page is touched.

use hugepage_assess::{pools, row};
use hugepage_kernel::Root;
use hugepage_server::placement::placement;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::rows;
use crate::{assessment, server};

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
