//! The huge pages of this host: `hugepage_pools`, `hugepage_nodes` and `hugepage_host`.

use hugepage_assess::columns::{self, fields};
use hugepage_assess::pools::PoolColumns;
use hugepage_assess::row_of;
use hugepage_assess::status_row::HostOfServer;
use hugepage_facts::pools;
use hugepage_kernel::ROOT;
use hugepage_server::kernel_facts;
use hugepage_server::placement::placement;
use pgrx::prelude::*;

use super::rows;
use crate::{assessment, server};

/// One row for each page size.
#[pg_extern(sql = false)]
fn hugepage_pools(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, columns::POOLS, |notes| {
        let rows = server::with_hierarchy(notes, |view, notes| {
            hugepage_server::pools::rows(&ROOT, view, notes)
        });
        const _: () = columns::require(columns::POOLS, &[PoolColumns::NAMES]);
        pools::of_host(&rows)
            .map(|row| fields(&PoolColumns::new(row)))
            .collect::<Vec<_>>()
    })
}

/// One row for each NUMA node, with the segment's pages there. No page is touched.
#[pg_extern(sql = false)]
fn hugepage_nodes(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, columns::NODES, |notes| {
        let status = assessment::now(notes);
        let mapping = server::main_mapping(notes);
        let postmaster = server::postmaster_in_proc().and_then(|pid| pid.parse().ok());
        let placement = placement(
            &ROOT,
            &status,
            mapping.as_ref(),
            postmaster,
            &mut rows::check_for_cancel,
            notes,
        );
        placement
            .map(|placement| placement.rows())
            .unwrap_or_default()
            .into_iter()
            .map(|row| {
                let of_node = row_of! { NODES, HostOfServer;
                    node: row.node,
                    page_size: row.pool.page_size,
                    memory: row.memory,
                    segment_pages: row.segment,
                    allowed: row.allowed,
                };
                of_node
                    .into_iter()
                    .chain(fields(&HostOfServer::new(None, None, Some(&row.pool))))
            })
    })
}

/// The kernel's settings and numbers, one row for each, with the file that it was read from.
#[pg_extern(sql = false)]
fn hugepage_host(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, columns::HOST, |notes| {
        let facts = kernel_facts::facts(&ROOT, notes);
        facts
            .into_iter()
            .map(|fact| row_of! { HOST; name: fact.name, setting: fact.setting, unit: fact.unit, source: fact.source })
    })
}
