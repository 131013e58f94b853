//! Waits on the process latch, in an asker and in a session that waits for one.

use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pgrx::bgworkers::BackgroundWorker;
use pgrx::pg_sys;

use crate::majors;

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
pub fn wait(event: &'static CStr, readable: Option<c_int>, limit: Duration) {
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
        }
    }
    pgrx::check_for_interrupts!();
}
