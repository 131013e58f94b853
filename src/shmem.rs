//! The state that the processes of a server share. `None` and the defaults hold in a library that is not preloaded.
//!
//! There are two kinds. [`SharedState`] and [`Found`] are in shared memory, and a crash restart resets them.
//! [`PostmasterState`] is in the postmaster's own memory: every other process has the copy that it got by fork(2).

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use hugepage_assess::advice::log::LogMessage;
use hugepage_assess::assessment::Threat;
use hugepage_assess::history::Record;
use hugepage_assess::model::{Cause, Demand, Loss, Past};
use hugepage_kernel::next_boot::pool_at_boot::PoolAtBoot;
use hugepage_kernel::postgresql::pg_control::RecoveryParameters;
use hugepage_kernel::{PageSize, Pages};
use hugepage_start::{StartWithoutOptions, TwoStarts};
use pgrx::atomics::PgAtomic;
use pgrx::lwlock::PgLwLock;
use pgrx::{PGRXSharedMemory, pg_sys};

use crate::asker::{Answer, Asked};

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

/// What the asker has found. Written by it, read by every view.
#[derive(Clone, Copy, Default)]
pub struct Found {
    start: SharedAnswer,
    boot: SharedBoot,
    /// The files that the configuration consists of, a line each.
    included_files: SharedText,
    /// Whether there was no room for all of them.
    has_more_files: bool,
}

/// An answer of the server's program about a start.
#[derive(Clone, Copy, Default)]
pub struct SharedAnswer {
    /// Identifies what was asked about; see [`NextStart::key`](crate::next_start::NextStart::key).
    key: u64,
    /// The time of the answer, in microseconds since 2000; 0 if there is none.
    time: pg_sys::TimestampTz,
    content: AnswerContent,
    recovery: Option<RecoveryParameters>,
    text: SharedText,
}

#[derive(Clone, Copy, Default)]
enum AnswerContent {
    #[default]
    Unknown,
    /// The demand of a start with the options of the command line, and that of one without; `None` where they do not
    /// differ.
    Starts(Demand, Option<Demand>),
    Refuses,
}

/// The pool at the next boot.
#[derive(Clone, Copy, Default)]
struct SharedBoot {
    /// The time of the look, in microseconds since 2000; 0 if nobody has looked.
    time: pg_sys::TimestampTz,
    size: Option<PageSize>,
    content: BootContent,
    text: SharedText,
}

#[derive(Clone, Copy, Default)]
enum BootContent {
    #[default]
    Unknown,
    Set(Pages),
    Unset,
}

impl SharedAnswer {
    /// The answer as others can read it.
    pub fn of(key: u64, asked: &Asked) -> Self {
        let (content, text) = match &asked.answer {
            Answer::Unknown(why) => (AnswerContent::Unknown, why.as_str()),
            Answer::Starts(TwoStarts { with_options, without: None }) => {
                (AnswerContent::Starts(*with_options, None), "")
            }
            Answer::Starts(TwoStarts { with_options, without: Some(StartWithoutOptions { asks_for, note }) }) => {
                (AnswerContent::Starts(*with_options, Some(*asks_for)), note.as_str())
            }
            Answer::Refuses(errors) => (AnswerContent::Refuses, errors.as_str()),
        };
        Self { key, time: now(), content, recovery: asked.recovery, text: SharedText::cut(text) }
    }

    /// The answer.
    pub fn asked(&self) -> Asked {
        let text = self.text.get();
        let answer = match self.content {
            AnswerContent::Unknown => Answer::Unknown(text),
            AnswerContent::Starts(with_options, without) => {
                let without = without.map(|asks_for| StartWithoutOptions { asks_for, note: text });
                Answer::Starts(TwoStarts { with_options, without })
            }
            AnswerContent::Refuses => Answer::Refuses(text),
        };
        Asked { answer, recovery: self.recovery }
    }
}

/// A text that is cut to what shared memory has room for.
#[derive(Clone, Copy)]
struct SharedText {
    length: usize,
    bytes: [u8; Self::ROOM],
}

impl SharedText {
    const ROOM: usize = 2000;

    fn cut(text: &str) -> Self {
        let length = text.floor_char_boundary(Self::ROOM);
        let mut bytes = [0; Self::ROOM];
        bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
        Self { length, bytes }
    }

    fn get(&self) -> String {
        String::from_utf8_lossy(&self.bytes[..self.length.min(Self::ROOM)]).into_owned()
    }
}

impl Default for SharedText {
    fn default() -> Self {
        Self::cut("")
    }
}

// SAFETY: numbers alone, without a pointer; the lock guards them.
#[allow(unsafe_code)]
unsafe impl PGRXSharedMemory for Found {}

// SAFETY: the name is the extension's own.
#[allow(unsafe_code)]
pub static FOUND: PgLwLock<Found> = unsafe { PgLwLock::new(c"pg_hugepages_found") };

/// State in the postmaster's memory, written by the postmaster alone while it allocates shared memory.
struct PostmasterState {
    /// Allocations of shared memory; 0 if the library is not preloaded. Written by the hook, see hooks.rs.
    generation: AtomicI64,
    /// The start of the postmaster process, in microseconds since 2000; set with the first record.
    process_start: OnceLock<pg_sys::TimestampTz>,
    /// The last allocation. Written by startup.rs; `None` while an allocation is being assessed.
    last_start: Mutex<Option<LastAllocation>>,
}

static POSTMASTER_STATE: PostmasterState =
    PostmasterState { generation: AtomicI64::new(0), process_start: OnceLock::new(), last_start: Mutex::new(None) };

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

/// Whether the worker has begun since the server started; `None` if the library is not preloaded.
pub fn has_worker() -> Option<bool> {
    generation().map(|_| SHARED_STATE.get().has_worker.load(Ordering::Relaxed))
}

/// Records that an asker was started for a question about a start; in the worker.
pub fn question_begins() {
    SHARED_STATE.get().question_time.store(now(), Ordering::Relaxed);
}

/// The time since the worker has asked about a start; `None` if it never has.
pub fn since_last_question() -> Option<Duration> {
    since(SHARED_STATE.get().question_time.load(Ordering::Relaxed))
}

/// The asker's answer about what has that key; `None` if it has none, or the library is not preloaded.
pub fn answer(key: u64) -> Option<Asked> {
    found(|found| (found.start.time != 0 && found.start.key == key).then(|| found.start.asked()))?
}

/// Keeps an answer about what has that key; in the asker.
pub fn set_answer(key: u64, asked: &Asked) {
    change(|found| found.start = SharedAnswer::of(key, asked));
}

/// The pool of `size` at the next boot, and the time of the look; `None` where nobody has looked.
pub fn boot(size: PageSize) -> Option<(PoolAtBoot, SystemTime)> {
    let SharedBoot { time, content, text, .. } =
        found(|found| Some(found.boot).filter(|boot| boot.time != 0 && boot.size == Some(size)))??;
    let pool = match content {
        BootContent::Set(pages) => PoolAtBoot::Set { pages, file: text.get() },
        BootContent::Unset => PoolAtBoot::Unset,
        BootContent::Unknown => PoolAtBoot::Unknown(text.get()),
    };
    Some((pool, system_time(time)))
}

/// Keeps what sets the pool of `size` at the next boot; in the asker.
pub fn set_boot(size: PageSize, pool: &PoolAtBoot) {
    let (content, text) = match pool {
        PoolAtBoot::Set { pages, file } => (BootContent::Set(*pages), file.as_str()),
        PoolAtBoot::Unset => (BootContent::Unset, ""),
        PoolAtBoot::Unknown(why) => (BootContent::Unknown, why.as_str()),
    };
    let boot = SharedBoot { time: now(), size: Some(size), content, text: SharedText::cut(text) };
    change(|found| found.boot = boot);
}

/// The time since what sets the pool at the next boot was read; `None` if nobody has.
pub fn since_boot_was_read() -> Option<Duration> {
    since(found(|found| found.boot.time)?)
}

/// The files that the configuration consists of, and whether these are all; none where the asker has not found them.
pub fn included_files() -> (Vec<PathBuf>, bool) {
    let (text, is_complete) =
        found(|found| (found.included_files.get(), !found.has_more_files)).unwrap_or((String::new(), true));
    (text.lines().map(PathBuf::from).collect(), is_complete)
}

/// Keeps the files that the configuration consists of; in the asker.
pub fn set_included_files(files: &[PathBuf]) {
    let names: Vec<_> = files.iter().filter_map(|file| file.to_str()).collect();
    let text = names.join("\n");
    let has_more_files = names.len() < files.len() || text.len() > SharedText::ROOM;
    let included_files = if has_more_files { SharedText::default() } else { SharedText::cut(&text) };
    change(|found| *found = Found { included_files, has_more_files, ..*found });
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

fn found<T>(read: impl FnOnce(&Found) -> T) -> Option<T> {
    generation().map(|_| read(&FOUND.share()))
}

fn change(write: impl FnOnce(&mut Found)) {
    if generation().is_some() {
        write(&mut FOUND.exclusive());
    }
}

/// The time since `time`; `None` if that is 0.
fn since(time: pg_sys::TimestampTz) -> Option<Duration> {
    (time != 0).then(|| Duration::from_micros(now().abs_diff(time)))
}

fn now() -> pg_sys::TimestampTz {
    // SAFETY: reads the clock.
    #[allow(unsafe_code)]
    unsafe {
        pg_sys::GetCurrentTimestamp()
    }
}

fn system_time(since_2000: pg_sys::TimestampTz) -> SystemTime {
    const YEAR_2000: Duration = Duration::from_secs(946_684_800);
    SystemTime::UNIX_EPOCH + YEAR_2000 + Duration::from_micros(since_2000.unsigned_abs())
}
