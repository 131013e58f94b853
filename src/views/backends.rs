//! `hugepage_backends`: one row for each process of this server, with its memory.

use hugepage_assess::row;
use hugepage_kernel::Root;
use pgrx::pg_sys::{self, Oid};
use pgrx::prelude::*;

use super::rows;
use crate::processes;

#[pg_extern(sql = false)]
fn hugepage_backends(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, rows::declared!("backends.sql"), |notes| {
        let processes = processes::all(&Root::live(), notes);
        processes.into_iter().map(|process| {
            let status = process.status.unwrap_or_default();
            let session = process.session.as_ref();
            let backend_type = session.and_then(|session| session.backend_type.as_deref());
            row! {
                pid: process.pid,
                backend_type: backend_type.or(process.title),
                datid: session.and_then(|session| session.database).map(Oid::to_u32),
                usesysid: session.and_then(|session| session.role).map(Oid::to_u32),
                application_name: session.and_then(|session| session.application_name.as_deref()),
                state: session.and_then(|session| session.state),
                backend_start: session.map(|session| session.start),
                page_tables: status.page_tables,
                rss_shmem: status.rss_shmem,
                rss_anon: status.rss_anon,
                rss_file: status.rss_file,
                swap: status.swap,
            }
        })
    })
}
