//! The sessions that pg_stat_activity shows, read from the backend status array (backend_status.h).

use std::borrow::Cow;
use std::ffi::{CStr, c_char};

use pgrx::pg_sys;

use crate::majors;

/// A process that has an entry in the backend status array.
#[derive(Clone, Debug)]
pub struct Session {
    /// The process ID.
    pub pid: i32,
    /// The start of the process, in microseconds since 2000.
    pub start: pg_sys::TimestampTz,
    /// The backend type as pg_stat_activity shows it.
    pub backend_type: Option<Cow<'static, str>>,
    /// The database, if the session has one.
    pub database: Option<pg_sys::Oid>,
    /// The role, if the session has one.
    pub role: Option<pg_sys::Oid>,
    /// The application name as pg_stat_activity shows it; `None` for a process without a database session.
    pub application_name: Option<String>,
    /// The state as pg_stat_activity shows it; `None` for a process without a state.
    pub state: Option<&'static str>,
}

/// The current sessions, from a new snapshot.
///
/// Discards the transaction's snapshot, as pg_stat_clear_snapshot() does: memory that is read now must not meet earlier sessions.
#[allow(unsafe_code)]
pub fn now_running() -> Vec<Session> {
    // SAFETY: both functions use this backend's private snapshot, whose bounds these are.
    unsafe {
        pg_sys::pgstat_clear_backend_activity_snapshot();
        let count = pg_sys::pgstat_fetch_stat_numbackends();
        (1..=count).filter_map(|index| session(majors::backend_status(index).as_ref()?)).collect()
    }
}

/// The server's name of its logger, which has no session: `logger`, from 19 on `syslogger`.
#[allow(unsafe_code)]
pub fn logger() -> &'static str {
    backend_type(pg_sys::BackendType::B_LOGGER).unwrap_or("logger")
}

/// The server's name of a type of processes.
#[allow(unsafe_code)]
fn backend_type(kind: pg_sys::BackendType::Type) -> Option<&'static str> {
    // SAFETY: constants of the server.
    unsafe { CStr::from_ptr(pg_sys::GetBackendTypeDesc(kind)) }.to_str().ok()
}

#[allow(unsafe_code)]
fn session(entry: &pg_sys::LocalPgBackendStatus) -> Option<Session> {
    let status = &entry.backendStatus;
    let some_oid = |oid: pg_sys::Oid| Some(oid).filter(|&oid| oid != pg_sys::InvalidOid);
    // SAFETY: the worker's type is a buffer of this backend, and st_appname points into the snapshot.
    let (backend_type, application_name) = unsafe {
        let backend_type = match status.st_backendType {
            pg_sys::BackendType::B_BG_WORKER => {
                text(pg_sys::GetBackgroundWorkerTypeByPid(status.st_procpid)).map(Cow::Owned)
            }
            other => backend_type(other).map(Cow::Borrowed),
        };
        (backend_type, text(status.st_appname))
    };
    (status.st_procpid > 0).then(|| Session {
        pid: status.st_procpid,
        start: status.st_proc_start_timestamp,
        backend_type,
        database: some_oid(status.st_databaseid),
        role: some_oid(status.st_userid),
        application_name,
        state: majors::state(status.st_state),
    })
}

/// # Safety
/// `text` is null or ends with a NUL byte.
#[allow(unsafe_code)]
unsafe fn text(text: *const c_char) -> Option<String> {
    // SAFETY: as above.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}
