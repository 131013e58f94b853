//! The memory of this server's processes: `hugepage_segments`, `hugepage_backends` and `hugepage_page_tables`.

use hugepage_assess::assessment::page_tables::{self, on_huge_pages};
use hugepage_assess::{columns, row_of};
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::{Bytes, PageSize, ROOT};
use hugepage_server::segments;
use pgrx::pg_sys::{self, Oid};
use pgrx::prelude::*;

use super::rows;
use crate::{processes, server, shared};

/// The shared memory that the asking process maps, and on request how much of it is resident.
#[pg_extern(sql = false)]
fn hugepage_segments(call: pg_sys::FunctionCallInfo, measure_resident: bool) {
    rows::return_rows(call, columns::SEGMENTS, |notes| {
        let rows = segments::rows(
            &ROOT,
            server::address_in_main(),
            server::address_in_interlock(),
            shared::transparent().as_ref(),
            notes,
        );
        let usage = match measure_resident {
            true => segments::usage(&ROOT, &rows, &mut rows::check_for_cancel, notes),
            false => vec![None; rows.len()],
        };
        rows.into_iter().zip(usage).map(|(row, usage)| {
            row_of! { SEGMENTS;
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

/// One row for each process, with its memory.
#[pg_extern(sql = false)]
fn hugepage_backends(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, columns::BACKENDS, |notes| {
        let processes = processes::all(notes);
        processes.into_iter().map(|process| {
            let status = process.status.unwrap_or_default();
            let session = process.session.as_ref();
            let backend_type = session.and_then(|session| session.backend_type.as_deref());
            row_of! { BACKENDS;
                pid: process.pid,
                backend_type: backend_type.or(process.title),
                datid: session.and_then(|session| session.database).map(Oid::to_u32),
                usesysid: session.and_then(|session| session.role).map(Oid::to_u32),
                application_name: session.and_then(|session| session.application_name.as_deref()),
                state: session.and_then(|session| session.state),
                backend_start: session.map(|session| session.start),
                page_tables: status.page_tables,
                rss_shmem: status.rss_shmem,
                rss_anon: status.rss_anon,
                rss_file: status.rss_file,
                swap: status.swap,
            }
        })
    })
}

/// One row with the page tables of all processes, and an estimate on huge pages.
#[pg_extern(sql = false)]
fn hugepage_page_tables(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, columns::PAGE_TABLES, |notes| {
        let processes = processes::all(notes);
        let meminfo = notes.keep(Meminfo::read(&ROOT));
        let mapping = server::main_mapping(notes);

        let sum = page_tables::sum(
            processes
                .iter()
                .filter_map(|process| process.status.as_ref()),
            PageSize::base(),
        );
        let memory_total = meminfo.as_ref().and_then(|meminfo| meminfo.mem_total);
        let at_max = mapping.and_then(|mapping| {
            page_tables::at(
                &sum,
                server::max_connections(),
                mapping.size(),
                mapping.page_size?,
            )
        });
        #[allow(clippy::cast_precision_loss)]
        let share = |(total, memory): (Bytes, Bytes)| {
            (total.0 as f64 / memory.0 as f64 * 1e6).round() / 1e6
        };
        Some(row_of! { PAGE_TABLES;
            processes: processes.len(),
            page_tables_total: sum.total,
            page_tables_max: sum.max,
            page_tables_host: meminfo.as_ref().and_then(|meminfo| meminfo.page_tables),
            memory_total: memory_total,
            share_of_memory: sum.total.zip(memory_total).map(share),
            estimated_on_huge_pages: on_huge_pages(&sum),
            saving: sum.of_shared_memory,
            estimated_at_max_connections: at_max,
        })
    })
}
