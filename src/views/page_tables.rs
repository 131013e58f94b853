//! `hugepage_page_tables`: one row with the page tables of this server, and an estimate on huge pages.

use hugepage_assess::assessment::page_tables::PageTables;
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::{PageSize, Root};
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::convert::{ToBigint, bigint};
use super::rows;
use crate::{processes, server};

#[pg_extern(sql = false)]
fn hugepage_page_tables(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, include_str!("page_tables.sql"), |notes| {
        let root = Root::live();
        let processes = processes::all(&root, notes);
        let meminfo = notes.keep(Meminfo::read(&root));
        let mapping = server::main_mapping(&root, notes);

        let sum = PageTables::sum(processes.iter().filter_map(|process| process.status.as_ref()), PageSize::base());
        let memory_total = meminfo.as_ref().and_then(|meminfo| meminfo.mem_total);
        let at_max = mapping.and_then(|mapping| sum.at(server::max_connections(), mapping.size(), mapping.page_size?));
        let share = |total: f64, memory: f64| (total / memory * 1e6).round() / 1e6;
        Some((
            i64::try_from(processes.len()).unwrap_or(i64::MAX),
            bigint(sum.total),
            bigint(sum.max),
            bigint(meminfo.as_ref().and_then(|meminfo| meminfo.page_tables)),
            bigint(memory_total),
            #[allow(clippy::cast_precision_loss)]
            sum.total.zip(memory_total).map(|(total, memory)| share(total.bigint() as f64, memory.bigint() as f64)),
            bigint(sum.on_huge_pages()),
            bigint(sum.of_shared_memory),
            bigint(at_max),
        ))
    })
}
