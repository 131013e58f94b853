//! `hugepage_status`: one row with the core's assessment.

use hugepage_assess::StatusRow;
use hugepage_kernel::Root;
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::memory::thp;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::convert::{ToBigint, bigint, text};
use super::rows;
use crate::{assessment, shmem, startup};

#[pg_extern(sql = false)]
fn hugepage_status(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, include_str!("status.sql"), |notes| {
        if shmem::lacks_worker() {
            startup::repeat_unless_heard();
        }
        let root = Root::live();
        let status = assessment::now(&root, notes);
        let transparent_hugepage = notes.keep(thp::choice(&root, "enabled")).flatten();

        let row = StatusRow::from(&status);
        let pool = row.pool.as_ref();
        Some((
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
            status.facts.requested.huge_pages.to_string(),
            bigint(row.huge_page_size),
            bigint(row.pages_needed),
            bigint(row.pages_missing),
            bigint(pool.map(|pool| pool.nr)),
            bigint(pool.map(|pool| pool.free)),
            bigint(pool.and_then(|pool| pool.resv)),
            bigint(pool.and_then(|pool| pool.surplus)),
            bigint(pool.and_then(Pool::available)),
            bigint(row.page_tables_host),
            transparent_hugepage,
            row.restart_outlook.to_string(),
            bigint(row.recommended_nr_hugepages),
            shmem::generation(),
            std::mem::take(notes).into_vec().into_iter().map(text).collect::<Vec<_>>(),
            row.crash_outlook.map(|outlook| outlook.to_string()),
            row.boot_outlook.map(|outlook| outlook.to_string()),
        ))
    })
}
