//! All processes of this server with their memory, each joined with its session in the backend status array (backend_status.h), which
//! pg_stat_activity shows.
//!
//! The kernel may reuse a pid at any time. A process is therefore joined with a session only if the session began before
//! the process's memory was read and still existed afterwards: then both are the same process.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::mem;

use hugepage_kernel::proc::process::{self, ProcessStatus, children};
use hugepage_kernel::{Notes, ROOT};
use pgrx::pg_sys;

use crate::guc::text;
use crate::{majors, server, shmem};

/// A process of this server.
#[derive(Debug)]
pub struct ServerProcess {
    /// The process ID.
    pub pid: i32,
    /// `None` for the postmaster, the logger, and a background worker without a database connection.
    pub session: Option<Session>,
    /// The type (`postmaster`, `logger`) of a process without a session; `None` if it has one or the type is unknown.
    pub title: Option<&'static str>,
    /// The memory of the process; `None` if it could not be read.
    pub status: Option<ProcessStatus>,
}

/// Sessions that begin meanwhile are read in another round; many new connections must not make this endless.
const MAX_ROUNDS: usize = 4;

/// The processes of this server, the postmaster first, without those that end meanwhile.
pub fn all(notes: &mut Notes) -> Vec<ServerProcess> {
    let postmaster = server::postmaster_pid();
    let readable = own_namespace(notes);
    let mut pids = BTreeSet::from([postmaster]);
    if readable {
        pids.extend(notes.keep(children(&ROOT, postmaster)).unwrap_or_default());
    }
    let (mut found, mut alone) = (BTreeMap::new(), BTreeMap::new());
    for _ in 0..MAX_ROUNDS {
        let before = shmem::now();
        let mut read = read_all(mem::take(&mut pids), postmaster, readable, notes);
        for session in now_running() {
            let pid = session.pid;
            match read.remove(&pid) {
                Some(status) if session.start <= before => {
                    found.insert(pid, (Some(session), None, status));
                }
                // It began meanwhile, or the kernel's list of children left it out.
                _ if !found.contains_key(&pid) => {
                    alone.remove(&pid);
                    pids.insert(pid);
                }
                _ => {}
            }
        }
        alone.extend(
            read.into_iter()
                .filter_map(|(pid, status)| Some((pid, status?))),
        );
        if pids.is_empty() {
            break;
        }
    }
    for (pid, status) in alone {
        if !found.contains_key(&pid)
            && let Some(title) = title(pid, postmaster)
        {
            found.insert(pid, (None, title, Some(status)));
        }
    }
    if !readable {
        found.insert(postmaster, (None, Some("postmaster"), None));
    }
    let process = |(pid, (session, title, status))| ServerProcess {
        pid,
        session,
        title,
        status,
    };
    let mut processes: Vec<_> = found.into_iter().map(process).collect();
    processes.sort_by_key(|process| process.pid != postmaster);
    processes
}

/// The memory of each running process of this server, by pid; `None` if it could not be read.
fn read_all(
    pids: BTreeSet<i32>,
    postmaster: i32,
    readable: bool,
    notes: &mut Notes,
) -> BTreeMap<i32, Option<ProcessStatus>> {
    let read = |pid| {
        pgrx::check_for_interrupts!();
        if !readable {
            return Some((pid, None));
        }
        match process::status(&ROOT, pid) {
            Ok(status) => {
                let is_own =
                    |status: &ProcessStatus| pid == postmaster || status.parent == Some(postmaster);
                // Else it has ended, and another process may have its pid now.
                status.filter(is_own).map(|status| (pid, Some(status)))
            }
            Err(error) => {
                notes.add(error.to_string());
                Some((pid, None))
            }
        }
    };
    pids.into_iter().filter_map(read).collect()
}

/// What a process of this server without a session is, if its title tells that; `None` if it has ended.
fn title(pid: i32, postmaster: i32) -> Option<Option<&'static str>> {
    if pid == postmaster {
        return Some(Some("postmaster"));
    }
    let title = process::title(&ROOT, pid).ok().flatten();
    let title = title.filter(|title| !title.is_empty())?;
    let name = title.rsplit_once(": ").map(|(_, name)| name);
    Some((name == Some(logger())).then(logger))
}

/// Whether the pids in /proc are those of this process's namespace; else there is a note.
fn own_namespace(notes: &mut Notes) -> bool {
    let is_own = notes.keep(server::has_own_proc());
    if is_own == Some(false) {
        notes.add("/proc shows another PID namespace: the memory of each process is unavailable");
    }
    is_own == Some(true)
}

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
fn now_running() -> Vec<Session> {
    // SAFETY: both functions use this backend's private snapshot, whose bounds these are.
    unsafe {
        pg_sys::pgstat_clear_backend_activity_snapshot();
        let count = pg_sys::pgstat_fetch_stat_numbackends();
        (1..=count)
            .filter_map(|index| session(majors::backend_status(index).as_ref()?))
            .collect()
    }
}

/// The server's name of its logger, which has no session: `logger`, from 19 on `syslogger`.
fn logger() -> &'static str {
    backend_type(pg_sys::BackendType::B_LOGGER).unwrap_or("logger")
}

/// The server's name of a type of processes.
#[allow(unsafe_code)]
fn backend_type(kind: pg_sys::BackendType::Type) -> Option<&'static str> {
    // SAFETY: constants of the server.
    unsafe { CStr::from_ptr(pg_sys::GetBackendTypeDesc(kind)) }
        .to_str()
        .ok()
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
