//! The asker: a dynamic background worker that asks what sessions, the worker and the postmaster must not.
//!
//! - It alone forks. Its children run the server's program ([`program`]), or read what sets the pool at the next boot
//!   ([`boot`]), because these files may not answer. Each has a deadline ([`child`]); if one does not end when it is killed, it is left.
//! - The permanent worker starts it when only the server's program can tell what a restart needs, and once an hour for the
//!   next boot; the answers are in shared memory ([`crate::shmem`]).
//! - `hugepage_preflight()` starts one of its own, which works without preloading: question and answer are in a
//!   [`message`]. A cancel ends the wait and the asker.
//! - It has no database, calls no check hook and parses no configuration.

pub mod boot;
mod child;
mod descendants;
mod message;
mod program;
#[expect(clippy::disallowed_methods, reason = "temporary files of the server")]
mod stub;

use std::ptr;
use std::time::{Duration, Instant};

use hugepage_kernel::{PageSize, Root};
use pgrx::bgworkers::{BackgroundWorker, BackgroundWorkerBuilder, BgWorkerStartTime, SignalWakeFlags};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::{PgMemoryContexts, pg_sys};

use crate::found::Asked;
use crate::next_start::NextRestart;
use crate::{found, latch, library, log, memory, server, settings, shmem};
use message::Message;

/// The time limit for all that the server's program is asked. What takes longer waits for something, as a start would.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// The time between two looks whether the asker has ended.
const PAUSE: Duration = Duration::from_millis(100);

/// Values that replace those on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `shared_buffers`, in blocks.
    pub shared_buffers: Option<i32>,
    /// `max_connections`.
    pub max_connections: Option<i32>,
    /// `huge_page_size`.
    pub huge_page_size: Option<PageSize>,
}

/// An asker that this process has started.
pub struct Running(*mut pg_sys::BackgroundWorkerHandle);

impl Running {
    /// Starts an asker for shared memory; `None` if no background worker can be started.
    pub fn for_worker() -> Option<Self> {
        Self::start(0)
    }

    #[allow(unsafe_code)]
    fn start(handle: pg_sys::dsm_handle) -> Option<Self> {
        let asker = BackgroundWorkerBuilder::new("pg_hugepages asker")
            .set_type("pg_hugepages asker")
            .set_library(&library::name_for_workers())
            .set_function("pg_hugepages_asker_main")
            .enable_shmem_access(None)
            .set_start_time(BgWorkerStartTime::ConsistentState)
            .set_restart_time(None)
            .set_argument(Some(pg_sys::Datum::from(handle)))
            .set_notify_pid(server::own_pid());
        let mut asker = pg_sys::BackgroundWorker::from(&asker);
        // SAFETY: two local variables; what the second one points to lives as long as this process.
        let (handle, is_registered) = unsafe {
            PgMemoryContexts::TopMemoryContext.switch_to(|_| {
                let mut handle = ptr::null_mut();
                let is_registered = pg_sys::RegisterDynamicBackgroundWorker(&raw mut asker, &raw mut handle);
                (handle, is_registered)
            })
        };
        is_registered.then_some(Self(handle))
    }

    /// Whether the asker has ended.
    #[allow(unsafe_code)]
    pub fn has_ended(&self) -> bool {
        let mut pid = 0;
        // SAFETY: the handle of `start`, and a local variable.
        let status = unsafe { pg_sys::GetBackgroundWorkerPid(self.0, &raw mut pid) };
        status == pg_sys::BgwHandleStatus::BGWH_STOPPED || status == pg_sys::BgwHandleStatus::BGWH_POSTMASTER_DIED
    }
}

/// Asks for a session about a start with these overrides, and waits for the answer. A cancel ends both.
pub fn ask(overrides: Overrides) -> Asked {
    if !settings::ask_server_program() {
        return Asked::unknown(settings::IS_OFF.to_owned());
    }
    let message = Message::new(overrides);
    let Some(asker) = Running::start(message.handle()) else {
        let code = PgSqlErrorCode::ERRCODE_INSUFFICIENT_RESOURCES;
        let report = ErrorReport::new(code, "could not register background process", function_name!());
        report.set_hint("You may need to increase max_worker_processes.").report(PgLogLevel::ERROR);
        unreachable!("an error ends the call");
    };
    message.ends(&asker);
    while !asker.has_ended() {
        latch::wait(None, PAUSE);
    }
    message.answer().unwrap_or_else(|| Asked::unknown("the background process ended without an answer".to_owned()))
}

/// Entry point of the asker. `handle`: the [`message`] of a session; 0 for the permanent worker.
#[pg_guard]
#[unsafe(no_mangle)]
#[allow(unsafe_code)]
pub extern "C-unwind" fn pg_hugepages_asker_main(handle: pg_sys::Datum) {
    BackgroundWorker::attach_signal_handlers(SignalWakeFlags::SIGTERM);
    // SAFETY: a function of this library, which is never unloaded.
    unsafe { pg_sys::on_proc_exit(Some(child::at_exit), pg_sys::Datum::from(0)) };
    let handle = pg_sys::dsm_handle::try_from(handle.value()).unwrap_or_default();
    log::catch_errors("ask what a start needs", memory::USUAL, || answer(handle));
    // An orphan that ends by a signal would be a server process that has crashed, to a postmaster that is process 1.
    while server::postmaster_pid() == 1 && descendants::are_left() && !latch::is_stopping() {
        latch::wait(None, PAUSE);
    }
    // SAFETY: the regular end of a process of the server; with 0 the asker is not started again.
    unsafe { pg_sys::proc_exit(0) };
}

fn answer(handle: pg_sys::dsm_handle) {
    let is_parent =
        descendants::become_subreaper().map_err(|error| format!("could not become the parent of orphans: {error}"));
    if log::ok_or_log("become the parent of orphans", is_parent).is_none() {
        return;
    }
    let is_session = handle != 0;
    let stuck = descendants::stuck();
    // Before the message: a child that does not end keeps what its parent has mapped.
    if shmem::generation().is_some() && stuck.is_none() {
        boot::read_files(is_session || boot::is_due());
    }
    let ask = |overrides| match stuck {
        Some(pid) => (0, Asked::unknown(format!("an earlier check, process {pid}, still waits for a file"))),
        None => program::ask(overrides, Instant::now() + TIME_LIMIT),
    };
    if is_session {
        let Some(message) = Message::of(handle) else { return };
        let overrides = message.overrides();
        let (key, asked) = ask(overrides);
        message.set_answer(&asked);
        if overrides == Overrides::default() {
            found::set_answer(key, &asked);
        }
    } else if settings::ask_server_program() {
        let next = NextRestart::now(&Root::live());
        if next.is_to_ask() {
            let (key, asked) = ask(Overrides::default());
            found::set_answer(if key == 0 { next.key } else { key }, &asked);
        }
    }
}
