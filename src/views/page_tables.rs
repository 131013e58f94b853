//! `hugepage_page_tables`: one row with the page tables of this server, and an estimate on huge pages.

use hugepage_assess::assessment::page_tables::PageTables;
use hugepage_assess::row;
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::{Bytes, PageSize, Root};
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::rows;
use crate::{processes, server};

#[pg_extern(sql = false)]
fn hugepage_page_tables(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, rows::declared!("page_tables.sql"), |notes| {
        let root = Root::live();
        let processes = processes::all(&root, notes);
        let meminfo = notes.keep(Meminfo::read(&root));
        let mapping = server::main_mapping(&root, notes);

        let sum = PageTables::sum(processes.iter().filter_map(|process| process.status.as_ref()), PageSize::base());
        let memory_total = meminfo.as_ref().and_then(|meminfo| meminfo.mem_total);
        let at_max = mapping.and_then(|mapping| sum.at(server::max_connections(), mapping.size(), mapping.page_size?));
        #[allow(clippy::cast_precision_loss)]
        let share = |(total, memory): (Bytes, Bytes)| (total.0 as f64 / memory.0 as f64 * 1e6).round() / 1e6;
        Some(row! {
            processes: processes.len(),
            page_tables_total: sum.total,
            page_tables_max: sum.max,
            page_tables_host: meminfo.as_ref().and_then(|meminfo| meminfo.page_tables),
            memory_total: memory_total,
            share_of_memory: sum.total.zip(memory_total).map(share),
            estimated_on_huge_pages: sum.on_huge_pages(),
            saving: sum.of_shared_memory,
            estimated_at_max_connections: at_max,
        })
    })
}
