//! What the core says of this server: `hugepage_status`, `hugepage_findings` and `hugepage_recommendations`.

use hugepage_assess::advice::{self, AdviceContext, recommendations};
use hugepage_assess::assessment::Severity;
use hugepage_assess::assessment::advisory::{Advisories, KernelFinding};
use hugepage_assess::assessment::page_tables::PageTables;
use hugepage_assess::columns::fields;
use hugepage_assess::row;
use hugepage_assess::status_row::{StatusRow, beside};
use hugepage_kernel::host::kernel_release::KernelRelease;
use hugepage_kernel::memory::thp;
use hugepage_kernel::proc::namespace;
use hugepage_kernel::{PageSize, Root};
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::rows;
use crate::{assessment, processes, shmem, startup};

/// One row with the assessment.
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

/// One row for each finding of this server, and one for each advisory on kernels that applies or may apply.
#[pg_extern(sql = false)]
fn hugepage_findings(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, rows::declared!("findings.sql"), |notes| {
        let root = Root::live();
        let status = assessment::now(&root, notes);
        let of_server = advice::findings(&status).into_iter();
        let of_server = of_server.map(|row| (row.name.to_owned(), Some(row.severity), row.message, row.hint));
        let release = KernelRelease::text(&root);
        let of_kernel = Advisories::known().concerning(&status.facts, release.as_deref()).into_iter();
        let of_kernel = of_kernel.filter_map(|KernelFinding { name, applies, detail }| {
            let severity = applies.map(|_| Severity::Notice);
            detail.map(|detail| (name, severity, detail, None))
        });
        let mut rows: Vec<_> = of_server.chain(of_kernel).collect();
        // A stable sort, so that findings of one severity keep their order; unknown ones come last.
        rows.sort_by_key(|(_, severity, ..)| std::cmp::Reverse(*severity));
        rows.into_iter().map(|(name, severity, message, hint)| {
            row! { finding: name, severity: severity, message: message, hint: hint }
        })
    })
}

/// Settings to change, the most severe first.
#[pg_extern(sql = false)]
fn hugepage_recommendations(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, rows::declared!("recommendations.sql"), |notes| {
        let root = Root::live();
        let status = assessment::now(&root, notes);
        let processes = processes::all(&root, notes);
        let statuses = processes.iter().filter_map(|process| process.status.as_ref());
        let context = AdviceContext {
            status,
            page_tables: PageTables::sum(statuses, PageSize::base()),
            is_in_container: namespace::shows_files_of_container(&root),
        };
        (1..).zip(recommendations(&context)).map(|(priority, found)| fields(&found).chain(row! { priority: priority }))
    })
}
