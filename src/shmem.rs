//! The state that the processes of a server share. `None` and the defaults hold in a library that is not preloaded.
//!
//! There are two kinds. [`SharedState`] and [`SharedAnswer`] are in shared memory, and a crash restart resets them.
//! [`PostmasterState`] is in the postmaster's own memory: every other process has the copy that it got by fork(2).

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use hugepage_assess::advice::log::LogMessage;
use hugepage_assess::assessment::Threat;
use hugepage_assess::history::Record;
use hugepage_assess::model::{Cause, Demand, Loss, Past};
use hugepage_start::{TwoStarts, Without};
use pgrx::atomics::PgAtomic;
use pgrx::lwlock::PgLwLock;
use pgrx::{PGRXSharedMemory, pg_sys};

use crate::preflight::Answer;

/// In shared memory, so that a new worker knows what an earlier one has logged.
#[derive(Default)]
pub struct SharedState {
    /// Whether the message of the first start was repeated for the logging collector. Written by the worker, once.
    startup_repeated: AtomicBool,
    /// The threats that were warned of, one bit each. Written by the worker at each sample.
    warned_threats: AtomicU8,
}

// SAFETY: atomics alone, without a pointer.
#[allow(unsafe_code)]
unsafe impl PGRXSharedMemory for SharedState {}

// SAFETY: the name is the extension's own.
#[allow(unsafe_code)]
pub static SHARED_STATE: PgAtomic<SharedState> = unsafe { PgAtomic::new(c"pg_hugepages") };

/// The last answer of the server's program about the configuration on disk. Written by the worker, read by every view.
#[derive(Clone, Copy, Default)]
pub struct SharedAnswer {
    /// The fingerprint of the configuration that was asked about; see [`crate::preflight::next_start`].
    fingerprint: u64,
    /// When the program was asked; 0 if it never was.
    asked_at: pg_sys::TimestampTz,
    content: AnswerContent,
    text: Text,
}

#[derive(Clone, Copy, Default)]
enum AnswerContent {
    #[default]
    Unknown,
    /// With the options of the command line; without them, where they make a difference.
    Starts(Demand, Option<Demand>),
    Refuses,
}

/// A text that is cut to what shared memory has room for.
#[derive(Clone, Copy)]
struct Text {
    length: usize,
    bytes: [u8; Self::ROOM],
}

impl Text {
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

impl Default for Text {
    fn default() -> Self {
        Self::cut("")
    }
}

// SAFETY: numbers alone, without a pointer; the lock guards them.
#[allow(unsafe_code)]
unsafe impl PGRXSharedMemory for SharedAnswer {}

// SAFETY: the name is the extension's own.
#[allow(unsafe_code)]
pub static LAST_ANSWER: PgLwLock<SharedAnswer> = unsafe { PgLwLock::new(c"pg_hugepages_answer") };

/// In the postmaster's memory. Written by the postmaster alone, while it allocates shared memory.
struct PostmasterState {
    /// Allocations of shared memory; 0 if the library is not preloaded. Written by the hook, see hooks.rs.
    generation: AtomicI64,
    /// When the postmaster process started. Written when the first record is made.
    process_start: OnceLock<pg_sys::TimestampTz>,
    /// The last allocation. Written by startup.rs; `None` while an allocation is being assessed.
    last_start: Mutex<Option<LastAllocation>>,
}

static POSTMASTER_STATE: PostmasterState =
    PostmasterState { generation: AtomicI64::new(0), process_start: OnceLock::new(), last_start: Mutex::new(None) };

/// Facts about the last allocation of shared memory that cannot be determined later.
#[derive(Clone, Debug)]
pub struct LastAllocation {
    /// Why the segment is not in the pages that were asked for; `None` if it is.
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

/// When the postmaster process started.
#[allow(unsafe_code)]
pub fn postmaster_start() -> SystemTime {
    // SAFETY: set when the process starts.
    let own = unsafe { pg_sys::MyStartTimestamp };
    let since_2000 = *POSTMASTER_STATE.process_start.get_or_init(|| own);
    const YEAR_2000: Duration = Duration::from_secs(946_684_800);
    SystemTime::UNIX_EPOCH + YEAR_2000 + Duration::from_micros(since_2000.unsigned_abs())
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

/// What was recorded at the last allocation, which every assessment asks for.
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

/// Replaces them; in the worker.
pub fn set_warned_threats(threats: &[Threat]) {
    let set = threats.iter().fold(0, |set, &threat| set | threat as u8);
    SHARED_STATE.get().warned_threats.store(set, Ordering::Relaxed);
}

/// The worker's answer about the configuration with that fingerprint; `None` if it has none, or the library is not preloaded.
pub fn answer(fingerprint: u64) -> Option<Answer> {
    let known = last_answer().filter(|last| last.asked_at != 0 && last.fingerprint == fingerprint)?;
    let text = known.text.get();
    Some(match known.content {
        AnswerContent::Unknown => Answer::Unknown(text),
        AnswerContent::Starts(with_options, without) => {
            let without = without.map(|asks_for| Without { asks_for, note: text });
            Answer::Starts(TwoStarts { with_options, without })
        }
        AnswerContent::Refuses => Answer::Refuses(text),
    })
}

/// The time since the worker has asked the server's program; `None` if it never has.
#[allow(unsafe_code)]
pub fn since_last_question() -> Option<Duration> {
    let asked_at = last_answer()?.asked_at;
    // SAFETY: reads the clock.
    let now = unsafe { pg_sys::GetCurrentTimestamp() };
    (asked_at != 0).then(|| Duration::from_micros(now.abs_diff(asked_at)))
}

/// Keeps the answer to a question of now; in the worker.
#[allow(unsafe_code)]
pub fn set_answer(fingerprint: u64, answer: &Answer) {
    let (content, text) = match answer {
        Answer::Unknown(why) => (AnswerContent::Unknown, why.as_str()),
        Answer::Starts(TwoStarts { with_options, without: None }) => (AnswerContent::Starts(*with_options, None), ""),
        Answer::Starts(TwoStarts { with_options, without: Some(Without { asks_for, note }) }) => {
            (AnswerContent::Starts(*with_options, Some(*asks_for)), note.as_str())
        }
        Answer::Refuses(errors) => (AnswerContent::Refuses, errors.as_str()),
    };
    // SAFETY: reads the clock.
    let asked_at = unsafe { pg_sys::GetCurrentTimestamp() };
    *LAST_ANSWER.exclusive() = SharedAnswer { fingerprint, asked_at, content, text: Text::cut(text) };
}

fn last_answer() -> Option<SharedAnswer> {
    generation().map(|_| *LAST_ANSWER.share())
}
