//! `hugepage_pools`: one row for each page size of the host.

use hugepage_kernel::Root;
use hugepage_server::pools;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::convert::{ToBigint, bigint};
use super::rows;
use crate::server;

#[pg_extern(sql = false)]
fn hugepage_pools(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, include_str!("pools.sql"), |notes| {
        let root = Root::live();
        let rows = server::with_hierarchy(&root, notes, |view, notes| pools::rows(&root, view, notes));
        rows.into_iter().filter(|row| row.node.is_none()).map(|row| {
            (
                row.pool.page_size.bigint(),
                row.is_default,
                row.pool.nr.bigint(),
                row.pool.free.bigint(),
                bigint(row.pool.resv),
                bigint(row.pool.surplus),
                bigint(row.pool.overcommit),
                bigint(row.pool.available()),
                bigint(row.limit.as_ref().map(|limit| limit.limit)),
                bigint(row.limit.as_ref().map(|limit| limit.usage)),
                bigint(row.obtainable_now),
            )
        })
    })
}
