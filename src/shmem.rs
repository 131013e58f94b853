//! The state that the processes of a server share. `None` and the defaults hold in a library that is not preloaded.
//!
//! There are two kinds. [`SharedState`] and [`Found`](crate::found::Found) are in shared memory, and a crash restart resets them.
//! [`PostmasterState`] is in the postmaster's own memory: every other process has the copy that it got by fork(2).

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use hugepage_assess::advice::events::LogMessage;
use hugepage_assess::assessment::Threat;
use hugepage_assess::history::Record;
use hugepage_assess::model::{Cause, Loss, Past};
use pgrx::atomics::PgAtomic;
use pgrx::{PGRXSharedMemory, pg_sys};

/// The time in which the server starts the worker.
const WORKER_START: Duration = Duration::from_secs(5);

/// State in shared memory, so that a new worker knows what an earlier one has logged.
#[derive(Default)]
pub struct SharedState {
    /// Whether the message of the first start was repeated for the logging collector. Written by the worker, once.
    startup_repeated: AtomicBool,
    /// The threats that were warned of, one bit each. Written by the worker at each sample.
    warned_threats: AtomicU8,
    /// Whether the worker has begun. Written by it.
    has_worker: AtomicBool,
    /// The time of the worker's last question about a start, in microseconds since 2000; 0 if there was none.
    question_time: AtomicI64,
    /// A child of an asker that did not end when it was killed; 0 if there is none. Written by an asker.
    stuck_child: AtomicI32,
    /// The clock tick of its start.
    stuck_child_start: AtomicU64,
}

// SAFETY: atomics alone, without a pointer.
#[allow(unsafe_code)]
unsafe impl PGRXSharedMemory for SharedState {}

// SAFETY: the name is the extension's own.
#[allow(unsafe_code)]
pub static SHARED_STATE: PgAtomic<SharedState> = unsafe { PgAtomic::new(c"pg_hugepages") };

/// State in the postmaster's memory, written by the postmaster alone while it allocates shared memory.
struct PostmasterState {
    /// Allocations of shared memory; 0 if the library is not preloaded. Written by the hook, see startup.rs.
    generation: AtomicI64,
    /// The time of the last allocation, in microseconds since 2000. Written by the hook.
    allocated_at: AtomicI64,
    /// The start of the postmaster process, in microseconds since 2000; set with the first record.
    process_start: OnceLock<pg_sys::TimestampTz>,
    /// The last allocation. Written by startup.rs; `None` while an allocation is being assessed.
    last_start: Mutex<Option<LastAllocation>>,
}

static POSTMASTER_STATE: PostmasterState = PostmasterState {
    generation: AtomicI64::new(0),
    allocated_at: AtomicI64::new(0),
    process_start: OnceLock::new(),
    last_start: Mutex::new(None),
};

/// Facts about the last allocation of shared memory that cannot be determined later.
#[derive(Clone, Debug)]
pub struct LastAllocation {
    /// The cause why the segment is not in the requested pages; `None` if it is.
    pub cause: Option<Cause>,
    /// The regression against the start before; `None` if there is none.
    pub loss: Option<Loss>,
    /// The message for the log.
    pub message: LogMessage,
    /// The record of the history, also if it could not be written.
    pub record: Record,
}

/// The number of allocations of shared memory by this postmaster, `None` if the library is not preloaded.
pub fn generation() -> Option<i64> {
    Some(POSTMASTER_STATE.generation.load(Ordering::Relaxed)).filter(|&count| count > 0)
}

/// Counts an allocation of shared memory; in the postmaster.
pub fn count_allocation() {
    POSTMASTER_STATE.generation.fetch_add(1, Ordering::Relaxed);
    POSTMASTER_STATE.allocated_at.store(now(), Ordering::Relaxed);
}

/// The start of the postmaster process.
#[allow(unsafe_code)]
pub fn postmaster_start() -> SystemTime {
    // SAFETY: set when the process starts.
    let own = unsafe { pg_sys::MyStartTimestamp };
    system_time(*POSTMASTER_STATE.process_start.get_or_init(|| own))
}

/// The last allocation, `None` if the library is not preloaded or the allocation could not be assessed.
pub fn last_start() -> Option<LastAllocation> {
    POSTMASTER_STATE.last_start.lock().ok()?.clone()
}

/// Replaces the last allocation; in the postmaster.
pub fn set_last_start(start: Option<LastAllocation>) {
    if let Ok(mut last) = POSTMASTER_STATE.last_start.lock() {
        *last = start;
    }
}

/// The facts recorded at the last allocation, for every assessment.
pub fn past() -> Past {
    let last = last_start();
    let (cause_at_start, loss) = last.map_or((None, None), |start| (start.cause, start.loss));
    Past { cause_at_start, loss, needed_at_start: None }
}

/// True once for a server whose first message went to the postmaster's standard error only, because the logging
/// collector starts after shared memory is allocated. The collector receives all later messages.
#[allow(unsafe_code)]
pub fn claim_startup_repeat() -> bool {
    // SAFETY: set when the server starts and never after.
    let collected = unsafe { pg_sys::Logging_collector };
    collected && generation() == Some(1) && !SHARED_STATE.get().startup_repeated.swap(true, Ordering::Relaxed)
}

/// The threats that were warned of and stand; none after an allocation.
pub fn warned_threats() -> Vec<Threat> {
    let set = SHARED_STATE.get().warned_threats.load(Ordering::Relaxed);
    Threat::ALL.into_iter().filter(|&threat| set & threat as u8 != 0).collect()
}

/// Replaces the threats that were warned of; in the worker.
pub fn set_warned_threats(threats: &[Threat]) {
    let set = threats.iter().fold(0, |set, &threat| set | threat as u8);
    SHARED_STATE.get().warned_threats.store(set, Ordering::Relaxed);
}

/// Records that the worker has begun; in the worker.
pub fn worker_begins() {
    SHARED_STATE.get().has_worker.store(true, Ordering::Relaxed);
}

/// Whether the worker of a preloaded library has not begun, although the server has had the time to start it.
pub fn lacks_worker() -> bool {
    let Some(state) = generation().map(|_| SHARED_STATE.get()) else { return false };
    let is_late = since(POSTMASTER_STATE.allocated_at.load(Ordering::Relaxed)).is_none_or(|since| since > WORKER_START);
    is_late && !state.has_worker.load(Ordering::Relaxed)
}

/// Records that an asker was started for a question about a start; in the worker.
pub fn question_begins() {
    SHARED_STATE.get().question_time.store(now(), Ordering::Relaxed);
}

/// The time since the worker has asked about a start; `None` if it never has.
pub fn since_last_question() -> Option<Duration> {
    since(SHARED_STATE.get().question_time.load(Ordering::Relaxed))
}

/// A child of an asker that did not end when it was killed, by its number and the clock tick of its start (proc(5), `stat`).
pub fn stuck_child() -> Option<(i32, u64)> {
    let state = generation().map(|_| SHARED_STATE.get())?;
    let pid = Some(state.stuck_child.load(Ordering::Relaxed)).filter(|pid| *pid != 0)?;
    Some((pid, state.stuck_child_start.load(Ordering::Relaxed)))
}

/// Keeps a child that did not end; in an asker.
pub fn set_stuck_child(pid: i32, start_ticks: u64) {
    if generation().is_some() {
        SHARED_STATE.get().stuck_child_start.store(start_ticks, Ordering::Relaxed);
        SHARED_STATE.get().stuck_child.store(pid, Ordering::Relaxed);
    }
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
