//! `hugepage_nodes`: one row for each NUMA node, with the segment's pages there. No page is touched.

use hugepage_core::advise::placement::{Start, notice};
use hugepage_core::collect::placement::placement;
use hugepage_core::notes::Notes;
use hugepage_core::read::{Root, service};
use pgrx::prelude::*;

use super::convert::{ToBigint, bigint, text};
use crate::{assessment, memory, server, session_notes};

pgrx::extension_sql_file!("nodes.sql", name = "nodes", requires = [hugepage_nodes]);

#[pg_extern(volatile, parallel_restricted)]
#[allow(clippy::type_complexity)]
fn hugepage_nodes() -> TableIterator<
    'static,
    (
        name!(node, Option<i32>),
        name!(page_size, i64),
        name!(nr_hugepages, i64),
        name!(free_hugepages, i64),
        name!(resv_hugepages, Option<i64>),
        name!(surplus_hugepages, Option<i64>),
        name!(memory, Option<i64>),
        name!(segment_pages, Option<i64>),
        name!(allowed, Option<bool>),
        name!(restart_pages, Option<i64>),
        name!(notice, Option<String>),
        name!(command, Option<String>),
    ),
> {
    memory::with_reserve(memory::USUAL, || {
        let (root, mut notes) = (Root::live(), Notes::default());
        let status = assessment::now(&root, &mut notes);
        let mapping = server::main_mapping(&root, &mut notes);
        let postmaster = server::postmaster_in_proc().and_then(|pid| pid.parse().ok());
        let placement = placement(&root, &status, mapping.as_ref(), postmaster, &mut check_for_cancel, &mut notes);
        session_notes::replace("hugepage_nodes", notes);
        let service = postmaster.and_then(|pid| service::of(&root, pid));
        let (program, data) = (server::executable(), server::data_directory());
        let programs = program.parent().unwrap_or(&program);
        let start = Start { service: service.as_deref(), programs, data: &data };
        let rows = placement.into_iter().flat_map(|placement| {
            let rows = placement.rows();
            rows.into_iter().map(move |row| (notice(&placement, &row, start), row)).collect::<Vec<_>>()
        });
        let rows: Vec<_> = rows.collect();
        TableIterator::new(rows.into_iter().map(|((notice, command), row)| {
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
        }))
    })
}

/// Ends the query if it was cancelled or has timed out.
fn check_for_cancel() {
    pgrx::check_for_interrupts!();
}
