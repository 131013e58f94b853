//! `hugepage_findings`: one row for each finding that can affect the verdict; `hugepage_status` shows the most severe.

use hugepage_core::assess::{Finding, Severity};
use hugepage_core::notes::Notes;
use hugepage_core::read::Root;
use pgrx::prelude::*;

use crate::{assessment, memory, session_notes};

pgrx::extension_sql_file!("findings.sql", name = "findings", requires = [hugepage_findings]);

#[pg_extern(volatile, parallel_restricted)]
fn hugepage_findings() -> TableIterator<'static, (name!(finding, &'static str), name!(severity, String))> {
    memory::with_reserve(memory::USUAL, || {
        let mut notes = Notes::default();
        let status = assessment::now(&Root::live(), &mut notes);
        session_notes::replace("hugepage_findings", notes);
        let mut rows: Vec<_> = Finding::NAMES.iter().map(|name| (*name, status.severity_of(name))).collect();
        // A stable sort, so that findings of one severity keep the order of the names.
        rows.sort_by_key(|(_, severity)| std::cmp::Reverse(*severity));
        TableIterator::new(rows.into_iter().map(|(name, severity): (_, Severity)| (name, severity.to_string())))
    })
}
