//! `hugepage_recommendations`: settings to change, the most severe first.

use hugepage_core::advise::recommendations;
use hugepage_core::notes::Notes;
use hugepage_core::read::Root;
use pgrx::prelude::*;

use super::convert::{bigint, text};
use crate::{advice, memory, session_notes};

pgrx::extension_sql_file!("recommendations.sql", name = "recommendations", requires = [hugepage_recommendations]);

#[pg_extern(volatile, parallel_restricted)]
#[allow(clippy::type_complexity)]
fn hugepage_recommendations() -> TableIterator<
    'static,
    (
        name!(priority, i32),
        name!(severity, String),
        name!(area, String),
        name!(setting, String),
        name!(current, Option<String>),
        name!(recommended, Option<String>),
        name!(reason, String),
        name!(command, Option<String>),
        name!(takes_effect, String),
        name!(saves, Option<i64>),
    ),
> {
    memory::with_reserve(memory::USUAL, || {
        let root = Root::live();
        let mut notes = Notes::default();
        let context = advice::now(&root, &mut notes);
        let found = recommendations(&context);
        session_notes::replace("hugepage_recommendations", notes);
        TableIterator::new((1..).zip(found).map(|(priority, row)| {
            (
                priority,
                row.severity.to_string(),
                row.area.to_string(),
                text(row.setting),
                row.current.map(text),
                row.recommended.map(text),
                text(row.reason),
                row.command.map(text),
                row.takes_effect.to_string(),
                bigint(row.saves),
            )
        }))
    })
}
