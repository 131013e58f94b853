//! `hugepage_host`: the kernel's side, a row for each fact with the file that says it.

use hugepage_core::notes::Notes;
use hugepage_core::read::Root;
use hugepage_core::survey::host;
use pgrx::prelude::*;

use super::convert::text;
use crate::remembered;

pgrx::extension_sql_file!("host.sql", name = "host", requires = [hugepage_host]);

#[pg_extern(volatile, parallel_restricted)]
fn hugepage_host() -> TableIterator<
    'static,
    (name!(name, String), name!(setting, String), name!(unit, Option<&'static str>), name!(source, String)),
> {
    let mut notes = Notes::default();
    let facts = host::facts(&Root::live(), &mut notes);
    remembered::keep("hugepage_host", notes);
    TableIterator::new(
        facts.into_iter().map(|fact| (text(fact.name), text(fact.setting), fact.unit, text(fact.source))),
    )
}
