//! What the postmaster knows of its allocations of shared memory, and the server's clock.
//!
//! These statics are in the postmaster's own memory: every other process has the copy that it got by fork(2). `None` and the defaults
//! hold in a library that is not preloaded.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use hugepage_assess::advice::events::LogMessage;
use hugepage_assess::history::Record;
use hugepage_facts::Past;
use pgrx::pg_sys;

/// Allocations of shared memory; 0 if the library is not preloaded. Written by the hook, see startup.rs.
static GENERATION: AtomicI64 = AtomicI64::new(0);
/// The time of the last allocation, in microseconds since 2000. Written by the hook.
static ALLOCATED_AT: AtomicI64 = AtomicI64::new(0);
/// The start of the postmaster process, in microseconds since 2000; set with the first record.
static PROCESS_START: OnceLock<pg_sys::TimestampTz> = OnceLock::new();
/// The last allocation. Written by startup.rs; `None` while an allocation is being assessed.
static LAST_START: Mutex<Option<LastAllocation>> = Mutex::new(None);

/// Facts about the last allocation of shared memory that cannot be determined later.
#[derive(Clone, Debug)]
pub struct LastAllocation {
    /// The message for the log.
    pub message: LogMessage,
    /// The record of the history, also if it could not be written.
    pub record: Record,
}

/// The number of allocations of shared memory by this postmaster, `None` if the library is not preloaded.
pub fn generation() -> Option<i64> {
    Some(GENERATION.load(Relaxed)).filter(|&count| count > 0)
}

/// The time since the last allocation of shared memory; `None` if the library is not preloaded.
pub fn since_allocation() -> Option<Duration> {
    since(ALLOCATED_AT.load(Relaxed))
}

/// Counts an allocation of shared memory; in the postmaster.
pub fn count_allocation() {
    GENERATION.fetch_add(1, Relaxed);
    ALLOCATED_AT.store(now(), Relaxed);
}

/// The start of the postmaster process.
#[allow(unsafe_code)]
pub fn postmaster_start() -> SystemTime {
    // SAFETY: set when the process starts.
    let own = unsafe { pg_sys::MyStartTimestamp };
    system_time(*PROCESS_START.get_or_init(|| own))
}

/// The last allocation, `None` if the library is not preloaded or the allocation could not be assessed.
pub fn last_start() -> Option<LastAllocation> {
    LAST_START.lock().ok()?.clone()
}

/// Replaces the last allocation; in the postmaster.
pub fn set_last_start(start: Option<LastAllocation>) {
    if let Ok(mut last) = LAST_START.lock() {
        *last = start;
    }
}

/// The facts recorded at the last allocation, for every assessment.
pub fn past() -> Past {
    let last = last_start();
    last.map_or_else(Past::default, |start| Past {
        cause_at_start: start.record.cause,
        loss: start.record.loss(),
        needed_at_start: None,
    })
}

/// The time since `time`, in microseconds since 2000; `None` if that is 0.
pub fn since(time: pg_sys::TimestampTz) -> Option<Duration> {
    (time != 0).then(|| Duration::from_micros(now().abs_diff(time)))
}

/// The time now, in microseconds since 2000.
pub fn now() -> pg_sys::TimestampTz {
    // SAFETY: reads the clock.
    #[allow(unsafe_code)]
    unsafe {
        pg_sys::GetCurrentTimestamp()
    }
}

/// A time in microseconds since 2000 as the system's.
pub fn system_time(since_2000: pg_sys::TimestampTz) -> SystemTime {
    const YEAR_2000: Duration = Duration::from_secs(946_684_800);
    SystemTime::UNIX_EPOCH + YEAR_2000 + Duration::from_micros(since_2000.unsigned_abs())
}
