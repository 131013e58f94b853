//! `hugepage_status`: one row with the core's assessment.

use hugepage_core::StatusRow;
use hugepage_core::notes::Notes;
use hugepage_core::read::thp;
use pgrx::prelude::*;

use super::convert::{ToBigint, bigint, text};
use super::one_row::TableIterator;
use crate::{assessment, kept_files, memory, session_notes, shmem};

pgrx::extension_sql_file!("status.sql", name = "status", requires = [hugepage_status]);

#[pg_extern(volatile, parallel_restricted)]
#[allow(clippy::type_complexity)]
fn hugepage_status() -> TableIterator<(
    name!(verdict, String),
    name!(message, String),
    name!(hint, Option<String>),
    name!(shared_buffers_in_huge_pages, Option<bool>),
    name!(landed_in, String),
    name!(mapping, Option<String>),
    name!(page_size, Option<i64>),
    name!(cause, Option<String>),
    name!(shared_buffers, i64),
    name!(shared_memory, Option<i64>),
    name!(huge_pages, String),
    name!(huge_page_size, Option<i64>),
    name!(pages_needed, Option<i64>),
    name!(pages_missing, Option<i64>),
    name!(nr_hugepages, Option<i64>),
    name!(free_hugepages, Option<i64>),
    name!(resv_hugepages, Option<i64>),
    name!(surplus_hugepages, Option<i64>),
    name!(available_hugepages, Option<i64>),
    name!(page_tables, Option<i64>),
    name!(transparent_hugepage, Option<String>),
    name!(restart_outlook, String),
    name!(recommended_nr_hugepages, Option<i64>),
    name!(generation, Option<i64>),
    name!(notes, Vec<String>),
    name!(crash_outlook, Option<String>),
)> {
    memory::with_reserve(memory::USUAL, || {
        let root = kept_files::root();
        let mut notes = Notes::default();
        let status = assessment::now(&root, &mut notes);
        session_notes::add_to(&mut notes);
        let transparent_hugepage = notes.keep(thp::choice(&root, "enabled")).flatten();

        let row = StatusRow::from(&status);
        TableIterator::once((
            row.verdict.to_string(),
            text(row.message),
            row.hint.map(text),
            row.in_huge_pages,
            row.landed_in.to_string(),
            row.mapping.map(text),
            bigint(row.page_size),
            row.cause.map(|cause| cause.to_string()),
            row.shared_buffers.bigint(),
            bigint(row.shared_memory),
            status.facts.asked.huge_pages.to_string(),
            bigint(row.huge_page_size),
            bigint(row.needed),
            bigint(row.missing),
            bigint(row.nr),
            bigint(row.free),
            bigint(row.resv),
            bigint(row.surplus),
            bigint(row.available),
            bigint(row.page_tables),
            transparent_hugepage,
            row.outlook.to_string(),
            bigint(row.recommended),
            shmem::generation(),
            notes.into_vec().into_iter().map(text).collect(),
            row.crash_outlook.map(|outlook| outlook.to_string()),
        ))
    })
}
