//! `hugepage_findings`: one row for each finding that can affect the verdict, of which `hugepage_status` shows the most
//! severe, and one for each advisory on kernels.

use hugepage_core::assess::advisory::Advisories;
use hugepage_core::assess::{Finding, Severity};
use hugepage_core::notes::Notes;
use hugepage_core::read::Root;
use hugepage_core::read::kernel_release::KernelRelease;
use pgrx::prelude::*;

use crate::{assessment, memory, session_notes};

pgrx::extension_sql_file!("findings.sql", name = "findings", requires = [hugepage_findings]);

#[pg_extern(volatile, parallel_restricted)]
#[allow(clippy::type_complexity)]
fn hugepage_findings()
-> TableIterator<'static, (name!(finding, String), name!(severity, Option<String>), name!(detail, Option<String>))> {
    memory::with_reserve(memory::USUAL, || {
        let (root, mut notes) = (Root::live(), Notes::default());
        let status = assessment::now(&root, &mut notes);
        session_notes::replace("hugepage_findings", notes);
        let of_server = Finding::NAMES.iter().map(|name| ((*name).to_owned(), Some(status.severity_of(name)), None));
        let of_kernel = Advisories::known().of(&status.facts, KernelRelease::text(&root).as_deref());
        let severity = |applies| if applies { Severity::Notice } else { Severity::Ok };
        let of_kernel = of_kernel.into_iter().map(|row| (row.name, row.applies.map(severity), row.detail));
        let mut rows: Vec<_> = of_server.chain(of_kernel).collect();
        // A stable sort, so that findings of one severity keep the order of the names; unknown ones come last.
        rows.sort_by_key(|(_, severity, _)| std::cmp::Reverse(*severity));
        let row = |(name, severity, detail): (_, Option<Severity>, _)| {
            (name, severity.map(|severity| severity.to_string()), detail)
        };
        TableIterator::new(rows.into_iter().map(row))
    })
}
