//! `hugepage_segments` and `hugepage_segments_detail()`: the shared memory that the asking process maps.

use hugepage_core::collect::segments::{self, MappedSegment};
use hugepage_core::notes::Notes;
use hugepage_core::read::Root;
use pgrx::prelude::*;

use super::convert::{ToBigint, bigint, text};
use crate::{memory, server, session_notes};

pgrx::extension_sql_file!("segments.sql", name = "segments", requires = [hugepage_segments, hugepage_segments_detail]);

#[pg_extern(volatile, parallel_restricted)]
fn hugepage_segments() -> TableIterator<
    'static,
    (
        name!(segment, String),
        name!(mapping, String),
        name!(size, i64),
        name!(page_size, Option<i64>),
        name!(landed_in, String),
        name!(reserved, i64),
    ),
> {
    memory::with_reserve(memory::USUAL, || {
        let mut notes = Notes::default();
        let rows = rows(&mut notes);
        session_notes::replace("hugepage_segments", notes);
        TableIterator::new(rows.into_iter().map(columns))
    })
}

#[pg_extern(volatile, parallel_restricted)]
#[allow(clippy::type_complexity)]
fn hugepage_segments_detail() -> TableIterator<
    'static,
    (
        name!(segment, String),
        name!(mapping, String),
        name!(size, i64),
        name!(page_size, Option<i64>),
        name!(landed_in, String),
        name!(resident, Option<i64>),
        name!(thp_mapped, Option<i64>),
        name!(hugetlb, Option<i64>),
        name!(reserved, i64),
    ),
> {
    memory::with_reserve(memory::USUAL, || {
        let mut notes = Notes::default();
        let rows = rows(&mut notes);
        let usage = segments::usage(&Root::live(), &rows, &mut check_for_cancel, &mut notes);
        session_notes::replace("hugepage_segments_detail", notes);
        TableIterator::new(rows.into_iter().zip(usage).map(|(row, usage)| {
            let (segment, mapping, size, page_size, landed_in, reserved) = columns(row);
            let resident = usage.map(|usage| usage.resident.saturating_add(usage.hugetlb));
            let thp_mapped = usage.map(|usage| usage.pmd_mapped);
            let hugetlb = usage.map(|usage| usage.hugetlb);
            let usage = (bigint(resident), bigint(thp_mapped), bigint(hugetlb));
            (segment, mapping, size, page_size, landed_in, usage.0, usage.1, usage.2, reserved)
        }))
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
