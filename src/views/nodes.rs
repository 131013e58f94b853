//! `hugepage_nodes`: one row for each NUMA node, with the segment's pages there. No page is touched.

use hugepage_assess::advice::placement::{Start, notice};
use hugepage_kernel::Root;
use hugepage_kernel::proc::service;
use hugepage_server::placement::placement;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::convert::{ToBigint, bigint, text};
use super::rows;
use crate::{assessment, server};

#[pg_extern(sql = false)]
fn hugepage_nodes(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, include_str!("nodes.sql"), |notes| {
        let root = Root::live();
        let status = assessment::now(&root, notes);
        let mapping = server::main_mapping(&root, notes);
        let postmaster = server::postmaster_in_proc().and_then(|pid| pid.parse().ok());
        let placement = placement(&root, &status, mapping.as_ref(), postmaster, &mut check_for_cancel, notes);
        let service = postmaster.and_then(|pid| service::service_of(&root, pid));
        let (program, data) = (server::executable(), server::data_directory());
        let programs = program.parent().unwrap_or(&program);
        let start = Start { service: service.as_deref(), programs, data: &data };
        let rows = placement.into_iter().flat_map(|placement| {
            let rows = placement.rows();
            rows.into_iter().map(move |row| (notice(&placement, &row, start), row)).collect::<Vec<_>>()
        });
        let rows: Vec<_> = rows.collect();
        rows.into_iter().map(|((notice, command), row)| {
            (
                i32::try_from(row.node).ok(),
                row.pool.page_size.bigint(),
                row.pool.nr.bigint(),
                row.pool.free.bigint(),
                bigint(row.pool.resv),
                bigint(row.pool.surplus),
                bigint(row.memory),
                bigint(row.segment),
                row.allowed,
                bigint(row.restart),
                notice,
                command.map(text),
            )
        })
    })
}

/// Ends the query if it was cancelled or has timed out.
fn check_for_cancel() {
    pgrx::check_for_interrupts!();
}
