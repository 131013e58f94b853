//! The asker: a dynamic background worker that asks what sessions, the worker and the postmaster must not.
//!
//! - It alone forks. Its children run the server's program ([`program`]), or read what sets the pool at the next boot
//!   ([`boot`]), because these files may not answer. Each has a deadline ([`child`]); if one does not end when it is killed, it is left.
//! - The permanent worker starts it when only the server's program can tell what a restart needs, and once an hour for the
//!   next boot; the answers are in shared memory ([`crate::shmem`]).
//! - `hugepage_preflight()` starts one of its own, also without preloading, one at a time ([`turn`]). A cancel ends the wait
//!   and the asker.
//! - It has no database, calls no check hook and parses no configuration.

pub mod boot;
mod child;
mod descendants;
mod program;
#[expect(clippy::disallowed_methods, reason = "temporary files of the server")]
mod stub;
mod turn;

use std::ptr;
use std::time::{Duration, Instant};

use hugepage_kernel::PageSize;
use pgrx::bgworkers::{
    BackgroundWorker, BackgroundWorkerBuilder, BgWorkerStartTime, SignalWakeFlags,
};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::{PgMemoryContexts, pg_sys};

use crate::found::{Asked, SharedAnswer};
use crate::next_start::NextRestart;
use crate::{latch, library, log, memory, server, settings, shared, shmem};
pub use turn::{TURN, Turn, is_taken};

/// The time limit for all that the server's program is asked. What takes longer waits for something, as a start would.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// The time between two looks whether an asker has ended.
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
    fn start(session: i32) -> Option<Self> {
        let asker = BackgroundWorkerBuilder::new("pg_hugepages asker")
            .set_type("pg_hugepages asker")
            .set_library(&library::name_for_workers())
            .set_function("pg_hugepages_asker_main")
            .enable_shmem_access(None)
            .set_start_time(BgWorkerStartTime::ConsistentState)
            .set_restart_time(None)
            .set_argument(Some(pg_sys::Datum::from(session)))
            .set_notify_pid(server::own_pid());
        let mut asker = pg_sys::BackgroundWorker::from(&asker);
        // SAFETY: two local variables; what the second one points to lives as long as this process.
        let (handle, is_registered) = unsafe {
            PgMemoryContexts::TopMemoryContext.switch_to(|_| {
                let mut handle = ptr::null_mut();
                let is_registered =
                    pg_sys::RegisterDynamicBackgroundWorker(&raw mut asker, &raw mut handle);
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
        status == pg_sys::BgwHandleStatus::BGWH_STOPPED
            || status == pg_sys::BgwHandleStatus::BGWH_POSTMASTER_DIED
    }

    /// Ends the asker. Where the postmaster is process 1 it ends by itself: what it could not collect would become the postmaster's.
    #[allow(unsafe_code)]
    fn end(&self) {
        if server::postmaster_pid() != 1 {
            // SAFETY: the handle of `start`; where the asker has ended its slot has another generation, which the server compares.
            unsafe { pg_sys::TerminateBackgroundWorker(self.0) };
        }
    }
}

/// Asks for a session about a start with these overrides, and waits for the answer. A cancel ends both. An answer that came
/// while it waited for others, and that still holds, is as good as its own.
pub fn ask(overrides: Overrides) -> Asked {
    if !settings::ask_server_program() {
        return Asked::unknown(settings::IS_OFF.to_owned());
    }
    let called = shmem::now();
    turn::in_session(|| {
        let key = NextRestart::now().key;
        let last = turn::left();
        if let Some(answer) = last.answer
            && last.question == overrides
            && answer.is_of(key, called)
        {
            return answer.asked();
        }
        turn::leave(|left| (left.question, left.answer) = (overrides, None));
        let Some(asker) = Running::start(server::own_pid()) else {
            ErrorReport::new(
                PgSqlErrorCode::ERRCODE_INSUFFICIENT_RESOURCES,
                "could not register background process",
                function_name!(),
            )
            .set_hint("You may need to increase max_worker_processes.")
            .report(PgLogLevel::ERROR);
            unreachable!("an error ends the call");
        };
        turn::await_end(asker);
        turn::left().answer.map_or_else(
            || Asked::unknown("the background process ended without an answer".to_owned()),
            |answer| answer.asked(),
        )
    })
}

/// Entry point of the asker. `session`: the process that has started it; 0 for the permanent worker.
#[pg_guard]
#[unsafe(no_mangle)]
#[allow(unsafe_code)]
pub extern "C-unwind" fn pg_hugepages_asker_main(session: pg_sys::Datum) {
    BackgroundWorker::attach_signal_handlers(SignalWakeFlags::SIGTERM);
    // SAFETY: a function of this library, which is never unloaded.
    unsafe { pg_sys::on_proc_exit(Some(child::at_exit), pg_sys::Datum::from(0)) };
    let session = i32::try_from(session.value()).unwrap_or_default();
    log::catch_errors("ask what a start needs", memory::USUAL, || {
        if turn::take(session) {
            answer(session != 0);
            turn::pass_on();
        }
    });
    // An orphan that ends by a signal would be a server process that has crashed, to a postmaster that is process 1.
    while server::postmaster_pid() == 1 && descendants::are_left() && !latch::is_stopping() {
        latch::wait(None, PAUSE);
    }
    // SAFETY: the regular end of a process of the server; with 0 the asker is not started again.
    unsafe { pg_sys::proc_exit(0) };
}

fn answer(is_session: bool) {
    let is_parent = descendants::become_subreaper()
        .map_err(|error| format!("could not become the parent of orphans: {error}"));
    if log::ok_or_log("become the parent of orphans", is_parent).is_none() {
        return;
    }
    let stuck = descendants::stuck();
    if shmem::generation().is_some() && stuck.is_none() {
        boot::read_files(is_session || boot::is_due());
    }
    // Who has to end has not heard the end of what was asked.
    let ask = |overrides| match stuck {
        Some(pid) => Some((
            0,
            Asked::unknown(format!(
                "an earlier check, process {pid}, still waits for a file"
            )),
        )),
        None => Some(program::ask(overrides, Instant::now() + TIME_LIMIT))
            .filter(|_| !latch::is_stopping()),
    };
    if is_session {
        let overrides = turn::left().question;
        let Some((key, asked)) = ask(overrides) else {
            return;
        };
        turn::leave(|left| left.answer = Some(SharedAnswer::of(key, &asked)));
        if overrides == Overrides::default() && key != 0 {
            shared::set_answer(key, &asked);
        }
    } else if settings::ask_server_program() {
        let next = NextRestart::now();
        if next.is_to_ask()
            && let Some((key, asked)) = ask(Overrides::default())
        {
            shared::set_answer(if key == 0 { next.key } else { key }, &asked);
        }
    }
}
