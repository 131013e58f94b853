//! `hugepage_findings`: one row for each finding that can affect the verdict, of which `hugepage_status` shows the most
//! severe, and one for each advisory on kernels.

use hugepage_assess::assessment::advisory::Advisories;
use hugepage_assess::assessment::{Finding, Severity};
use hugepage_kernel::Root;
use hugepage_kernel::host::kernel_release::KernelRelease;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::rows;
use crate::assessment;

pgrx::extension_sql_file!("findings.sql", name = "findings");

#[pg_extern(sql = false)]
fn hugepage_findings(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, |notes| {
        let root = Root::live();
        let status = assessment::now(&root, notes);
        let of_server = Finding::NAMES.iter().map(|name| ((*name).to_owned(), Some(status.severity_of(name)), None));
        let of_kernel = Advisories::known().concerning(&status.facts, KernelRelease::text(&root).as_deref());
        let severity = |applies| if applies { Severity::Notice } else { Severity::Ok };
        let of_kernel = of_kernel.into_iter().map(|row| (row.name, row.applies.map(severity), row.detail));
        let mut rows: Vec<_> = of_server.chain(of_kernel).collect();
        // A stable sort, so that findings of one severity keep the order of the names; unknown ones come last.
        rows.sort_by_key(|(_, severity, _)| std::cmp::Reverse(*severity));
        let row = |(name, severity, detail): (_, Option<Severity>, _)| {
            (name, severity.map(|severity| severity.to_string()), detail)
        };
        rows.into_iter().map(row)
    })
}
