//! What the asker has found, in shared memory: the answer of the server's program about a start, what sets the pool at the next
//! boot, and the files of the configuration. It is in shared memory: nothing where the library is not preloaded.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use hugepage_assess::model::Demand;
use hugepage_kernel::next_boot::PoolAtBoot;
use hugepage_kernel::postgresql::pg_control::RecoveryParameters;
use hugepage_kernel::{PageSize, Pages};
use hugepage_start::{StartAnswer, TwoStarts};
use pgrx::lwlock::PgLwLock;
use pgrx::{PGRXSharedMemory, pg_sys};

use crate::shmem::{generation, now, since, system_time};

/// The answer on the next start of this server, with and without the options of its command line.
pub type Answer = StartAnswer<TwoStarts<Demand>>;

/// What the server's program says of a start.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The answer.
    pub answer: Answer,
    /// What the recovery of a standby would compare with its primary's settings; `None` for another server.
    pub recovery: Option<RecoveryParameters>,
}

impl Asked {
    /// No answer; the reason.
    pub const fn unknown(why: String) -> Self {
        Self { answer: Answer::Unknown(why), recovery: None }
    }
}

/// What the asker has found. Written by it, read by every view.
#[derive(Clone, Copy, Default)]
pub struct Found {
    start: SharedAnswer,
    boot: SharedBoot,
    /// The files that the configuration consists of, a line each.
    included_files: SharedText,
    /// Whether not all are known, or there was no room for them.
    has_more_files: bool,
}

/// An answer of the server's program about a start.
#[derive(Clone, Copy, Default)]
pub struct SharedAnswer {
    /// Identifies what was asked about; see [`NextRestart::key`](crate::next_start::NextRestart::key).
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
    /// The demand of a start with the options of the command line, and that of one without; `None` if they do not differ.
    Starts(Demand, Option<Demand>),
    Refuses,
}

/// The pool at the next boot.
#[derive(Clone, Copy, Default)]
struct SharedBoot {
    /// The time of the look, in microseconds since 2000; 0 if nobody has looked.
    time: pg_sys::TimestampTz,
    size: Option<PageSize>,
    text: SharedText,
}

impl SharedAnswer {
    /// The answer as others can read it.
    pub fn of(key: u64, asked: &Asked) -> Self {
        let (content, text) = match &asked.answer {
            Answer::Unknown(why) => (AnswerContent::Unknown, why.as_str()),
            Answer::Starts(TwoStarts { with_options, without }) => {
                let (without, note) = without.as_ref().map(|(demand, note)| (*demand, note.as_str())).unzip();
                (AnswerContent::Starts(*with_options, without), note.unwrap_or_default())
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
                Answer::Starts(TwoStarts { with_options, without: without.map(|demand| (demand, text)) })
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

/// The asker's answer about what has that key; `None` if it has none, or the library is not preloaded.
pub fn answer(key: u64) -> Option<Asked> {
    found(|found| (found.start.time != 0 && found.start.key == key).then(|| found.start.asked()))?
}

/// Keeps an answer about what has that key; in the asker.
pub fn set_answer(key: u64, asked: &Asked) {
    change(|found| found.start = SharedAnswer::of(key, asked));
}

/// The pool of `size` at the next boot, and the time of the look; `None` if nobody has looked.
pub fn boot(size: PageSize) -> Option<(PoolAtBoot, SystemTime)> {
    let SharedBoot { time, text, .. } =
        found(|found| Some(found.boot).filter(|boot| boot.time != 0 && boot.size == Some(size)))??;
    let text = text.get();
    let (first, rest) = text.split_once(' ').unwrap_or((&text, ""));
    let pool = match (first, first.parse()) {
        (_, Ok(pages)) => PoolAtBoot::Set(Pages(pages), rest.to_owned()),
        ("unset", _) => PoolAtBoot::Unset,
        _ => PoolAtBoot::Unknown(rest.to_owned()),
    };
    Some((pool, system_time(time)))
}

/// Keeps what sets the pool of `size` at the next boot: `70 FILE`, `unset` or `unknown WHY`; in the asker.
pub fn set_boot(size: PageSize, pool: &str) {
    let boot = SharedBoot { time: now(), size: Some(size), text: SharedText::cut(pool) };
    change(|found| found.boot = boot);
}

/// The time since what sets the pool at the next boot was read; `None` if nobody has.
pub fn since_boot_was_read() -> Option<Duration> {
    since(found(|found| found.boot.time)?)
}

/// The files that the configuration consists of, and whether these are all; none if the asker has not found them.
pub fn included_files() -> (Vec<PathBuf>, bool) {
    let (text, is_complete) =
        found(|found| (found.included_files.get(), !found.has_more_files)).unwrap_or((String::new(), true));
    (text.lines().map(PathBuf::from).collect(), is_complete)
}

/// Keeps the files that the configuration consists of, a line each; nothing if not all are known. In the asker.
pub fn set_included_files(names: &str) {
    let has_more_files = names.is_empty() || names.len() > SharedText::ROOM;
    let included_files = SharedText::cut(if has_more_files { "" } else { names });
    change(|found| *found = Found { included_files, has_more_files, ..*found });
}

fn found<T>(read: impl FnOnce(&Found) -> T) -> Option<T> {
    generation().map(|_| read(&FOUND.share()))
}

fn change(write: impl FnOnce(&mut Found)) {
    if generation().is_some() {
        write(&mut FOUND.exclusive());
    }
}
