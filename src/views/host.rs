//! `hugepage_host`: the kernel's settings and numbers, one row for each, with the file that it was read from.

use hugepage_assess::row;
use hugepage_kernel::Root;
use hugepage_server::kernel_facts;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::rows;

#[pg_extern(sql = false)]
fn hugepage_host(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, rows::declared!("host.sql"), |notes| {
        let facts = kernel_facts::facts(&Root::live(), notes);
        facts
            .into_iter()
            .map(|fact| row! { name: fact.name, setting: fact.setting, unit: fact.unit, source: fact.source })
    })
}
