//! `hugepage_segments`: the shared memory that the asking process maps, and on request how much of it is resident.

use hugepage_assess::row;
use hugepage_kernel::Root;
use hugepage_server::segments;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::rows;
use crate::server;

#[pg_extern(sql = false)]
fn hugepage_segments(call: pg_sys::FunctionCallInfo, measure_resident: bool) {
    rows::return_rows(call, rows::declared!("segments.sql"), |notes| {
        let root = Root::live();
        let rows = segments::rows(&root, server::address_in_main(), server::address_in_interlock(), notes);
        let usage = match measure_resident {
            true => segments::usage(&root, &rows, &mut rows::check_for_cancel, notes),
            false => vec![None; rows.len()],
        };
        rows.into_iter().zip(usage).map(|(row, usage)| {
            row! {
                segment: row.role,
                mapping: row.mapping.name(),
                size: row.mapping.memory(),
                page_size: row.mapping.page_size,
                landed_in: row.landing,
                reserved: row.mapping.size(),
                resident: usage.as_ref().map(|usage| usage.resident.saturating_add(usage.hugetlb)),
                thp_mapped: usage.as_ref().map(|usage| usage.pmd_mapped),
                hugetlb: usage.as_ref().map(|usage| usage.hugetlb),
            }
        })
    })
}
