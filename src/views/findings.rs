//! `hugepage_findings`: one row for each finding of this server, and one for each advisory on kernels that applies or may apply.

use hugepage_assess::advice;
use hugepage_assess::assessment::Severity;
use hugepage_assess::assessment::advisory::{Advisories, KernelFinding};
use hugepage_assess::row;
use hugepage_kernel::Root;
use hugepage_kernel::host::kernel_release::KernelRelease;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::rows;
use crate::assessment;

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
