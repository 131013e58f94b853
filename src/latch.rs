//! Waits on the process latch, in an asker and in a session that waits for one.

use std::ffi::c_int;
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

/// Waits until `readable` has data, at most for `limit`, as pg_stat_activity shows. A cancel or timeout is an error.
#[allow(unsafe_code)]
pub fn wait(readable: Option<c_int>, limit: Duration) {
    let socket = readable.map_or(0, |_| pg_sys::WL_SOCKET_READABLE);
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH | socket;
    let events = i32::try_from(events).unwrap_or_default();
    let descriptor = readable.unwrap_or(pg_sys::PGINVALID_SOCKET);
    let limit = i64::try_from(limit.as_millis()).unwrap_or(i64::MAX).max(1);
    let event = majors::wait_event(c"HugepagesAsker");
    // SAFETY: the latch is this process's own, and the descriptor, if any, is open.
    unsafe {
        let happened = pg_sys::WaitLatchOrSocket(pg_sys::MyLatch, events, descriptor, limit, event);
        if happened.unsigned_abs() & pg_sys::WL_LATCH_SET != 0 {
            pg_sys::ResetLatch(pg_sys::MyLatch);
        }
    }
    pgrx::check_for_interrupts!();
}
