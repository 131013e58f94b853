//! `hugepage_backends`: one row for each process of this server, with its memory.

use std::borrow::Cow;

use hugepage_kernel::Root;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::convert::bigint;
use super::rows;
use crate::processes;

#[pg_extern(sql = false)]
fn hugepage_backends(call: pg_sys::FunctionCallInfo) {
    rows::return_rows(call, include_str!("backends.sql"), |notes| {
        let processes = processes::all(&Root::live(), notes);
        processes.into_iter().map(|process| {
            let status = process.status.unwrap_or_default();
            let (mut backend_type, mut application_name) = (process.title.map(Cow::Borrowed), None);
            let (mut database, mut role, mut state, mut start) = (None, None, None, None);
            if let Some(session) = process.session {
                (database, role, state) = (session.database, session.role, session.state);
                start = TimestampWithTimeZone::try_from(session.start).ok();
                application_name = session.application_name;
                backend_type = session.backend_type.or(backend_type);
            }
            (
                process.pid,
                backend_type.map(Cow::into_owned),
                database,
                role,
                application_name,
                state,
                start,
                bigint(status.page_tables),
                bigint(status.rss_shmem),
                bigint(status.rss_anon),
                bigint(status.rss_file),
                bigint(status.swap),
            )
        })
    })
}
