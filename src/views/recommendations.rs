//! `hugepage_recommendations`: settings to change, the most severe first.

use hugepage_assess::advice::recommendations;
use hugepage_assess::columns::fields;
use hugepage_assess::row;
use hugepage_kernel::Root;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::rows;
use crate::advice;

#[pg_extern(sql = false)]
fn hugepage_recommendations(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, rows::declared!("recommendations.sql"), |notes| {
        let root = Root::live();
        let context = advice::now(&root, notes);
        (1..).zip(recommendations(&context)).map(|(priority, found)| fields(&found).chain(row! { priority: priority }))
    })
}
