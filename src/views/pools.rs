//! `hugepage_pools`: one row for each page size of the host.

use hugepage_assess::columns::fields;
use hugepage_assess::pools::{PoolColumns, of_host};
use hugepage_kernel::Root;
use hugepage_server::pools;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::rows;
use crate::server;

#[pg_extern(sql = false)]
fn hugepage_pools(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, rows::declared!("pools.sql"), |notes| {
        let root = Root::live();
        let rows = server::with_hierarchy(&root, notes, |view, notes| pools::rows(&root, view, notes));
        of_host(&rows).map(|row| fields(&PoolColumns::new(row))).collect::<Vec<_>>()
    })
}
