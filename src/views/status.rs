//! What the core says of this server: `hugepage_status`, `hugepage_findings` and `hugepage_recommendations`.

use hugepage_assess::advice::{self, recommendations};
use hugepage_assess::assessment::advisory::{Advisories, KernelFinding};
use hugepage_assess::assessment::{Severity, page_tables};
use hugepage_assess::columns::{self, fields};
use hugepage_assess::row_of;
use hugepage_assess::status_row::{HostOfServer, StatusRow};
use hugepage_kernel::host::kernel_release::KernelRelease;
use hugepage_kernel::memory::thp;
use hugepage_kernel::{PageSize, ROOT};
use pgrx::prelude::*;

use super::rows;
use crate::{assessment, processes, shared, shmem, startup};

/// One row with the assessment.
#[pg_extern(sql = false)]
fn hugepage_status(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, columns::STATUS, |notes| {
        if shared::lacks_worker() {
            startup::repeat_unless_heard();
        }
        let status = assessment::now(notes);
        let (facts, landed_in) = (&status.facts, status.facts.landing());
        let of_server = row_of! { STATUS, StatusRow, HostOfServer;
            shared_buffers_in_huge_pages: landed_in.is_hugetlb(),
            shared_buffers: facts.requested.shared_buffers,
            transparent_hugepage: notes.keep(thp::choice(&ROOT, "enabled")).flatten(),
            generation: shmem::generation(),
            notes: std::mem::take(notes).into_vec(),
            crash_outlook: status.crash_outlook(),
            boot_outlook: status.boot_outlook(),
        };
        let row = fields(&StatusRow::new(&status));
        let of_host = fields(&HostOfServer::of_status(&status));
        Some(row.chain(of_host).chain(of_server))
    })
}

/// One row for each finding of this server, and one for each advisory on kernels that applies or may apply.
#[pg_extern(sql = false)]
fn hugepage_findings(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, columns::FINDINGS, |notes| {
        let status = assessment::now(notes);
        let of_server = advice::findings(&status).into_iter();
        let of_server = of_server.map(|row| {
            (
                row.name.to_owned(),
                Some(row.severity),
                row.message,
                row.hint,
            )
        });
        let release = KernelRelease::text(&ROOT);
        let of_kernel = Advisories::known()
            .concerning(&status.facts, release.as_deref())
            .into_iter();
        let of_kernel = of_kernel.filter_map(
            |KernelFinding {
                 name,
                 applies,
                 detail,
             }| {
                let severity = applies.map(|_| Severity::Notice);
                detail.map(|detail| (name, severity, detail, None))
            },
        );
        let mut rows: Vec<_> = of_server.chain(of_kernel).collect();
        // A stable sort, so that findings of one severity keep their order; unknown ones come last.
        rows.sort_by_key(|(_, severity, ..)| std::cmp::Reverse(*severity));
        rows.into_iter().map(|(name, severity, message, hint)| {
            row_of! { FINDINGS; finding: name, severity: severity, message: message, hint: hint }
        })
    })
}

/// Settings to change, the most severe first.
#[pg_extern(sql = false)]
fn hugepage_recommendations(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, columns::RECOMMENDATIONS, |notes| {
        let status = assessment::now(notes);
        let processes = processes::all(notes);
        let statuses = processes
            .iter()
            .filter_map(|process| process.status.as_ref());
        let page_tables = page_tables::sum(statuses, PageSize::base());
        (1..)
            .zip(recommendations(&status, &page_tables))
            .map(|(priority, found)| {
                row_of! { RECOMMENDATIONS;
                    priority: priority,
                    severity: found.severity,
                    area: found.area,
                    setting: found.setting,
                    current: found.current,
                    recommended: found.recommended,
                    reason: found.reason,
                    command: found.command,
                    takes_effect: found.takes_effect,
                    saving: found.saving,
                }
            })
    })
}
