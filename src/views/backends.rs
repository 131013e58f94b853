//! `hugepage_backends`: one row for each process of this server, with its memory.

use std::borrow::Cow;

use hugepage_core::notes::Notes;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys::Oid;
use pgrx::prelude::*;

use super::convert::bigint;
use crate::{kept_files, memory, processes, session_notes};

pgrx::extension_sql_file!("backends.sql", name = "backends", requires = [hugepage_backends]);

#[pg_extern(volatile, parallel_restricted)]
#[allow(clippy::type_complexity)]
fn hugepage_backends() -> TableIterator<
    'static,
    (
        name!(pid, i32),
        name!(backend_type, Option<String>),
        name!(datid, Option<Oid>),
        name!(usesysid, Option<Oid>),
        name!(application_name, Option<String>),
        name!(state, Option<&'static str>),
        name!(backend_start, Option<TimestampWithTimeZone>),
        name!(page_tables, Option<i64>),
        name!(rss_shmem, Option<i64>),
        name!(rss_anon, Option<i64>),
        name!(rss_file, Option<i64>),
        name!(swap, Option<i64>),
    ),
> {
    memory::with_reserve(memory::USUAL, || {
        let mut notes = Notes::default();
        let processes = processes::all(&kept_files::root(), &mut notes);
        session_notes::replace("hugepage_backends", notes);
        TableIterator::new(processes.into_iter().map(|process| {
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
        }))
    })
}
