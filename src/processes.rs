//! All processes of this server with their memory, each joined with its session in the backend status array (backend_status.h), which
//! pg_stat_activity shows.
//!
//! The kernel may reuse a pid at any time. A process is therefore joined with a session only if the session began before
//! the process's memory was read and still existed afterwards: then both are the same process.

use std::borrow::Cow;
use std::ffi::{CStr, c_char};

use hugepage_kernel::proc::process::{self, ProcessStatus, Processes, children};
use hugepage_kernel::{Notes, Root};
use pgrx::pg_sys;

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
pub fn all(root: &Root, notes: &mut Notes) -> Vec<ServerProcess> {
    let postmaster = server::postmaster_pid();
    let readable = own_namespace(root, notes);
    let mut pids = vec![postmaster];
    if readable {
        pids.extend(notes.keep(children(root, postmaster)).unwrap_or_default());
    }
    let mut processes = Vec::with_capacity(pids.len());
    let mut alone = Vec::new();
    for round in 0..MAX_ROUNDS {
        let before = shmem::now();
        let read = read_all(root, pids, postmaster, readable, notes);
        let mut joined = vec![false; read.len()];
        let mut again = Vec::new();
        for session in now_running() {
            let pid = session.pid;
            match read.binary_search_by_key(&pid, |(pid, _)| *pid) {
                Ok(index) if session.start <= before => {
                    joined[index] = true;
                    processes.push(ServerProcess { pid, session: Some(session), title: None, status: read[index].1 });
                }
                // It began meanwhile, or the kernel's list of children left it out.
                _ if round == 0 || processes.iter().all(|known: &ServerProcess| known.pid != pid) => again.push(pid),
                _ => {}
            }
        }
        let without = read.into_iter().zip(joined).filter(|(_, joined)| !joined);
        alone.extend(without.filter_map(|((pid, status), _)| Some((pid, status?))));
        // A process that is read again gets its row in the next round.
        alone.retain(|(pid, _)| !again.contains(pid));
        pids = again;
        if pids.is_empty() {
            break;
        }
    }
    alone.retain(|(pid, _)| processes.iter().all(|process| process.pid != *pid));
    processes.extend(alone.into_iter().filter_map(|(pid, status)| without_session(root, pid, postmaster, status)));
    if !readable {
        processes.push(ServerProcess { pid: postmaster, session: None, title: Some("postmaster"), status: None });
    }
    processes.sort_unstable_by_key(|process| (process.pid != postmaster, process.pid));
    processes
}

/// The memory of each running process of this server, by pid; `None` if it could not be read.
fn read_all(
    root: &Root,
    mut pids: Vec<i32>,
    postmaster: i32,
    readable: bool,
    notes: &mut Notes,
) -> Vec<(i32, Option<ProcessStatus>)> {
    pids.sort_unstable();
    pids.dedup();
    let mut read = Vec::with_capacity(pids.len());
    let processes = readable.then(|| Processes::open(root));
    for pid in pids {
        pgrx::check_for_interrupts!();
        match processes.as_ref().map_or(Ok(None), |processes| processes.status(pid)) {
            _ if !readable => read.push((pid, None)),
            Ok(Some(status)) if pid == postmaster || status.parent == Some(postmaster) => {
                read.push((pid, Some(status)));
            }
            // It has ended, and another process may have its pid now.
            Ok(_) => {}
            Err(error) => {
                notes.add(error.to_string());
                read.push((pid, None));
            }
        }
    }
    read
}

/// A process of this server without a session; `None` if it has ended.
fn without_session(root: &Root, pid: i32, postmaster: i32, status: ProcessStatus) -> Option<ServerProcess> {
    let title = if pid == postmaster {
        Some("postmaster")
    } else {
        let title = process::title(root, pid).ok().flatten().filter(|title| !title.is_empty())?;
        title.rsplit_once(": ").is_some_and(|(_, name)| name == logger()).then(logger)
    };
    Some(ServerProcess { pid, session: None, title, status: Some(status) })
}

/// Whether the pids in /proc are those of this process's namespace; else there is a note.
fn own_namespace(root: &Root, notes: &mut Notes) -> bool {
    let is_own = notes.keep(server::has_own_proc(root));
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
        (1..=count).filter_map(|index| session(majors::backend_status(index).as_ref()?)).collect()
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
