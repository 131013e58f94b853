//! Waits on the process latch for a child, for its turn or for some time, without losing a wakeup that another waiter needs.

use std::cell::Cell;
use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pgrx::bgworkers::BackgroundWorker;
use pgrx::pg_sys;

use crate::majors;

thread_local! {
    /// Whether the latch was set during a wait.
    static LATCH_WAS_SET: Cell<bool> = const { Cell::new(false) };
}

/// Permits [`wait`] while it exists. On drop it sets the latch again if a wait has reset it, for the worker's main loop.
pub struct LatchGuard;

impl Drop for LatchGuard {
    fn drop(&mut self) {
        if LATCH_WAS_SET.take() {
            // SAFETY: the latch is this process's own.
            #[allow(unsafe_code)]
            unsafe {
                pg_sys::SetLatch(pg_sys::MyLatch);
            }
        }
    }
}

/// Whether this process is the worker and has to end: there SIGTERM raises no error.
pub fn is_stopping() -> bool {
    static STOPPING: AtomicBool = AtomicBool::new(false);
    // SAFETY: set when a background worker starts, and null in every other process.
    #[allow(unsafe_code)]
    let is_worker = unsafe { !pg_sys::MyBgworkerEntry.is_null() };
    if is_worker && BackgroundWorker::sigterm_received() {
        STOPPING.store(true, Ordering::Relaxed);
    }
    STOPPING.load(Ordering::Relaxed)
}

/// Waits until `readable` has data, at most for `limit`; `event` is its name in pg_stat_activity. A cancel or timeout is an error.
#[allow(unsafe_code)]
pub fn wait(_guard: &LatchGuard, event: &'static CStr, readable: Option<c_int>, limit: Duration) {
    let socket = readable.map_or(0, |_| pg_sys::WL_SOCKET_READABLE);
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH | socket;
    let limit = i64::try_from(limit.as_millis()).unwrap_or(i64::MAX).max(1);
    // SAFETY: the latch is this process's own, and the descriptor, if any, is open.
    unsafe {
        let events = i32::try_from(events).unwrap_or_default();
        let no_socket = pg_sys::PGINVALID_SOCKET;
        let happened = pg_sys::WaitLatchOrSocket(
            pg_sys::MyLatch,
            events,
            readable.unwrap_or(no_socket),
            limit,
            majors::wait_event(event),
        );
        if happened.unsigned_abs() & pg_sys::WL_LATCH_SET != 0 {
            pg_sys::ResetLatch(pg_sys::MyLatch);
            LATCH_WAS_SET.set(true);
        }
    }
    pgrx::check_for_interrupts!();
}
