//! `hugepage_recommendations`: settings to change, the most severe first.

use hugepage_assess::advice::recommendations;
use hugepage_kernel::Root;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::convert::{bigint, text};
use super::rows;
use crate::advice;

#[pg_extern(sql = false)]
fn hugepage_recommendations(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, include_str!("recommendations.sql"), |notes| {
        let root = Root::live();
        let context = advice::now(&root, notes);
        let found = recommendations(&context);
        (1..).zip(found).map(|(priority, row)| {
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
                bigint(row.saving),
            )
        })
    })
}
