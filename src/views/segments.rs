//! `hugepage_segments` and `hugepage_segments_detail()`: the shared memory that the asking process maps.

use hugepage_kernel::Root;
use hugepage_kernel::notes::Notes;
use hugepage_server::segments::{self, MappedSegment};
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::convert::{ToBigint, bigint, text};
use super::rows;
use crate::server;

pgrx::extension_sql_file!("segments.sql", name = "segments");

#[pg_extern(sql = false)]
fn hugepage_segments(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, |notes| {
        let rows = rows(notes);
        rows.into_iter().map(columns)
    })
}

#[pg_extern(sql = false)]
fn hugepage_segments_detail(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, |notes| {
        let rows = rows(notes);
        let usage = segments::usage(&Root::live(), &rows, &mut check_for_cancel, notes);
        rows.into_iter().zip(usage).map(|(row, usage)| {
            let (segment, mapping, size, page_size, landed_in, reserved) = columns(row);
            let resident = usage.map(|usage| usage.resident.saturating_add(usage.hugetlb));
            let thp_mapped = usage.map(|usage| usage.pmd_mapped);
            let hugetlb = usage.map(|usage| usage.hugetlb);
            let usage = (bigint(resident), bigint(thp_mapped), bigint(hugetlb));
            (segment, mapping, size, page_size, landed_in, usage.0, usage.1, usage.2, reserved)
        })
    })
}

fn rows(notes: &mut Notes) -> Vec<MappedSegment> {
    segments::rows(&Root::live(), server::address_in_main(), server::address_in_interlock(), notes)
}

fn columns(row: MappedSegment) -> (String, String, i64, Option<i64>, String, i64) {
    (
        row.role.to_string(),
        text(row.mapping.name().to_owned()),
        row.mapping.memory().bigint(),
        bigint(row.mapping.page_size),
        row.landing.to_string(),
        row.mapping.size().bigint(),
    )
}

/// Ends the query if it was cancelled or has timed out.
fn check_for_cancel() {
    pgrx::check_for_interrupts!();
}
