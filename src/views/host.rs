//! `hugepage_host`: the kernel's settings and counters, one row for each, with the file that it was read from.

use hugepage_core::collect::kernel_facts;
use hugepage_core::notes::Notes;
use hugepage_core::read::Root;
use pgrx::prelude::*;

use super::convert::text;
use crate::{memory, session_notes};

pgrx::extension_sql_file!("host.sql", name = "host", requires = [hugepage_host]);

#[pg_extern(volatile, parallel_restricted)]
fn hugepage_host() -> TableIterator<
    'static,
    (name!(name, String), name!(setting, Option<String>), name!(unit, Option<&'static str>), name!(source, String)),
> {
    memory::with_reserve(memory::USUAL, || {
        let mut notes = Notes::default();
        let facts = kernel_facts::facts(&Root::live(), &mut notes);
        session_notes::replace("hugepage_host", notes);
        TableIterator::new(
            facts.into_iter().map(|fact| (text(fact.name), fact.setting.map(text), fact.unit, text(fact.source))),
        )
    })
}
