//! `hugepage_status`: one row with the core's assessment.

use hugepage_assess::columns::fields;
use hugepage_assess::row;
use hugepage_assess::status_row::{StatusRow, beside};
use hugepage_kernel::Root;
use hugepage_kernel::memory::thp;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::rows;
use crate::{assessment, shmem, startup};

#[pg_extern(sql = false)]
fn hugepage_status(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, rows::declared!("status.sql"), |notes| {
        if shmem::lacks_worker() {
            startup::repeat_unless_heard();
        }
        let root = Root::live();
        let status = assessment::now(&root, notes);
        let (facts, landed_in) = (&status.facts, status.facts.landing());
        let of_server = row! {
            shared_buffers_in_huge_pages: landed_in.is_hugetlb(),
            shared_buffers: facts.requested.shared_buffers,
            transparent_hugepage: notes.keep(thp::choice(&root, "enabled")).flatten(),
            generation: shmem::generation(),
            notes: std::mem::take(notes).into_vec(),
            crash_outlook: status.crash_outlook(),
            boot_outlook: status.boot_outlook(),
        };
        let row = fields(&StatusRow::new(&status));
        Some(row.chain(beside(&status)).chain(of_server))
    })
}
