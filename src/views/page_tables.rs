//! `hugepage_page_tables`: one row with the page tables of this server, and an estimate on huge pages.

use hugepage_core::PageSize;
use hugepage_core::assess::page_tables::PageTables;
use hugepage_core::notes::Notes;
use hugepage_core::read::meminfo::Meminfo;
use pgrx::prelude::*;

use super::convert::{ToBigint, bigint};
use super::one_row::TableIterator;
use crate::{kept_files, memory, processes, server, session_notes};

pgrx::extension_sql_file!("page_tables.sql", name = "page_tables", requires = [hugepage_page_tables]);

#[pg_extern(volatile, parallel_restricted)]
#[allow(clippy::type_complexity)]
fn hugepage_page_tables() -> TableIterator<(
    name!(processes, i64),
    name!(page_tables_total, Option<i64>),
    name!(page_tables_max, Option<i64>),
    name!(page_tables_host, Option<i64>),
    name!(memory_total, Option<i64>),
    name!(share_of_memory, Option<f64>),
    name!(estimated_on_huge_pages, Option<i64>),
    name!(saving, Option<i64>),
    name!(estimated_at_max_connections, Option<i64>),
)> {
    memory::with_reserve(memory::USUAL, || {
        let root = kept_files::root();
        let mut notes = Notes::default();
        let processes = processes::all(&root, &mut notes);
        let meminfo = notes.keep(Meminfo::read(&root));
        let mapping = server::main_mapping(&root, &mut notes);
        session_notes::replace("hugepage_page_tables", notes);

        let sum = PageTables::sum(processes.iter().filter_map(|process| process.status.as_ref()), PageSize::base());
        let memory_total = meminfo.as_ref().and_then(|meminfo| meminfo.mem_total);
        let at_max = mapping.and_then(|mapping| sum.at(server::max_connections(), mapping.size(), mapping.page_size?));
        TableIterator::once((
            i64::try_from(processes.len()).unwrap_or(i64::MAX),
            bigint(sum.total),
            bigint(sum.max),
            bigint(meminfo.as_ref().and_then(|meminfo| meminfo.page_tables)),
            bigint(memory_total),
            #[allow(clippy::cast_precision_loss)]
            sum.total.zip(memory_total).map(|(total, memory)| total.bigint() as f64 / memory.bigint() as f64),
            bigint(sum.on_huge_pages()),
            bigint(sum.of_shared_memory),
            bigint(at_max),
        ))
    })
}
