//! The background worker: repeats the startup message for the logging collector, trims the history, and warns of losses.
//!
//! - It has no database, so it runs on a primary and on a standby and blocks no DROP DATABASE. It connects all the
//!   same, so that pg_stat_activity shows it.
//! - Each sample (`pg_hugepages.sample_interval`, and every reload) reads what `hugepage_status` reads, and compares it
//!   with the last record of the history; if none could be written, with the last start.
//! - Before a sample, if only the server's program can tell what a restart needs, it starts the [asker](crate::asker): once
//!   for each change, and at most once a minute, or once a sample if samples are closer; once an hour also for the next
//!   boot. It never waits for the asker, which sets its latch at the end. Every view reads the answers from shared memory.
//! - The threats that it has warned of are in shared memory, so that a new worker does not warn of them again.
//! - An error in a sample is one line in the log; the next sample follows.
//! - On SIGTERM, and after an error at a reload, it ends with status 1: the postmaster starts a new one unless the server stops.

use std::time::{Duration, Instant};

use hugepage_assess::advice::events;
use hugepage_assess::history::{Event, Record};
use hugepage_kernel::Notes;
use hugepage_kernel::next_boot::BootLook;
use pgrx::bgworkers::{
    BackgroundWorker, BackgroundWorkerBuilder, BgWorkerStartTime, SignalWakeFlags,
};
use pgrx::prelude::*;

use crate::asker;
use crate::found::{Answer, Asked};
use crate::next_start::NextRestart;
use crate::{
    assessment, history, latch, library, log, memory, settings, shared, shmem, startup, transparent,
};

/// The time that the postmaster waits before it starts a new worker is that between samples, within these bounds.
const DELAYS: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(60));
/// The shortest time between two askers; less where samples are closer than that.
const MIN_PAUSE: Duration = Duration::from_secs(60);
/// The time between two looks whether the asker of a session has ended.
const BUSY: Duration = Duration::from_secs(1);
/// The reason why a question has no answer.
const NO_SLOT: &str =
    "no background worker could be started for it; you may need to increase max_worker_processes";
/// An unknown answer is asked for again after one pause, then after twice the pause before, at most after so many doublings.
const MAX_DOUBLINGS: u32 = 6;

/// Registers the worker; in `_PG_init` of a preloaded library.
pub fn register() {
    BackgroundWorkerBuilder::new("pg_hugepages")
        .set_type("pg_hugepages")
        .set_library(&library::name_for_workers())
        .set_function("pg_hugepages_worker_main")
        .enable_spi_access()
        .set_start_time(BgWorkerStartTime::ConsistentState)
        .set_restart_time(Some(
            settings::sample_interval().map_or(DELAYS.1, |time| time.clamp(DELAYS.0, DELAYS.1)),
        ))
        .load();
}

/// Entry point of the worker process.
#[pg_guard]
#[unsafe(no_mangle)]
#[allow(unsafe_code)]
pub extern "C-unwind" fn pg_hugepages_worker_main(_argument: pg_sys::Datum) {
    BackgroundWorker::attach_signal_handlers(SignalWakeFlags::SIGHUP | SignalWakeFlags::SIGTERM);
    // It runs no statement that pg_cancel_backend() could cancel. SAFETY: the signal of this process alone.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
    BackgroundWorker::connect_worker_to_spi(None, None);
    shared::worker_begins();
    log::catch_errors("start the worker", memory::USUAL, || {
        startup::repeat_unless_heard();
        history::trim();
    });
    let mut worker = Worker::default();
    let mut is_reloaded = false;
    while !latch::is_stopping() {
        let interval = settings::sample_interval();
        let mut pause = None;
        log::catch_errors("assess shared memory", memory::USUAL, || {
            pause = worker.ask();
            // What is about to be known is no change of the outlook.
            if worker.must_wait || latch::is_stopping() {
                return;
            }
            if std::mem::take(&mut is_reloaded) || interval.is_some() {
                worker.sample();
            }
        });
        if !BackgroundWorker::wait_latch(interval.into_iter().chain(pause).min()) {
            break;
        }
        if BackgroundWorker::sighup_received() {
            reload();
            is_reloaded = true;
        }
    }
    // SAFETY: the regular end of a process of the server.
    unsafe { pg_sys::proc_exit(1) };
}

/// Reads the configuration files, as each process of the server does at a reload. An error ends this process at once (elog.c,
/// `ExitOnAnyError`): pgrx would copy it into the memory context of the server's parser, and where that context gets no
/// memory the copy fails again, until the server restarts.
#[allow(unsafe_code)]
fn reload() {
    // SAFETY: in the main loop of a worker, between samples.
    unsafe {
        let before = pg_sys::ExitOnAnyError;
        pg_sys::ExitOnAnyError = true;
        pg_sys::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP);
        pg_sys::ExitOnAnyError = before;
    }
}

/// A question that has no answer.
struct OpenQuestion {
    key: u64,
    attempts: u32,
}

/// The state between two samples.
#[derive(Default)]
struct Worker {
    /// The last record; `None` before the first sample.
    last: Option<Record>,
    /// Records that this worker has appended since the file was last trimmed.
    added: usize,
    /// The asker that runs.
    asker: Option<asker::Running>,
    /// The last start of an asker by this worker; `None` if there was none.
    boot: Option<Instant>,
    /// The last question without an answer; `None` if there is none.
    question: Option<OpenQuestion>,
    /// Whether an answer is to come soon.
    must_wait: bool,
    /// Whether it has recorded the first look after a boot.
    has_boot: bool,
}

impl Worker {
    /// Starts the asker, where what it finds is not known. Returns the time until it may be started; `None` if it need not be.
    fn ask(&mut self) -> Option<Duration> {
        self.must_wait = false;
        let next = NextRestart::now();
        let open = self.question.take().filter(|open| open.key == next.key);
        let known = shared::answer(next.key);
        let is_open = settings::ask_server_program()
            && next.is_to_ask()
            && known
                .as_ref()
                .is_none_or(|known| matches!(known.answer, Answer::Unknown(_)));
        let attempts = open.map_or(0, |open| open.attempts);
        let is_running = self.asker.as_ref().is_some_and(|asker| !asker.has_ended());
        self.must_wait =
            is_open && next.differs() && known.is_none() && (attempts == 0 || is_running);
        self.question = is_open.then_some(OpenQuestion {
            key: next.key,
            attempts,
        });
        if is_running {
            return None;
        }
        if asker::is_taken() {
            return Some(BUSY);
        }
        let shortest =
            settings::sample_interval().map_or(MIN_PAUSE, |interval| interval.min(MIN_PAUSE));
        let pause = shortest * (1 << attempts.saturating_sub(1).min(MAX_DOUBLINGS));
        let left = shared::since_last_question()
            .map_or(Duration::ZERO, |since| pause.saturating_sub(since));
        let can_ask = is_open && left.is_zero();
        let can_read = asker::boot::is_due()
            && self
                .boot
                .is_none_or(|last| last.elapsed() >= asker::boot::INTERVAL);
        if can_ask || can_read {
            self.asker = asker::Running::for_worker();
            self.boot = self.asker.as_ref().map(|_| Instant::now()).or(self.boot);
        }
        if can_ask {
            shared::question_begins();
            self.question = Some(OpenQuestion {
                key: next.key,
                attempts: attempts + 1,
            });
            if self.asker.is_none() {
                shared::set_answer(next.key, &Asked::unknown(NO_SLOT.to_owned()));
                self.must_wait = false;
            }
        }
        is_open.then_some(if can_ask { pause } else { left })
    }

    /// Assesses shared memory, and logs and records what has changed.
    fn sample(&mut self) {
        transparent::look();
        let mut notes = Notes::default();
        let status = assessment::now(&mut notes);
        let record = history::record(Event::Change, &status, &mut notes);
        let before = self.last.take().or_else(|| before_first_sample(&record));
        let warned = shared::warned_threats();
        shared::set_warned_threats(&events::standing(&status, &warned));
        let look = self.first_look();
        let of_boot = look.map(|boot| Record {
            boot: Some(boot),
            detail: Some("first look after the boot".to_owned()),
            ..record.clone()
        });
        let update = events::update(&status, record, before.as_ref(), &warned);
        update.messages.into_iter().for_each(log::write);
        self.last = before;
        update
            .record
            .into_iter()
            .chain(of_boot)
            .for_each(|record| self.append(record));
    }

    /// What the asker has seen first after the boot, if this worker has not recorded it.
    fn first_look(&mut self) -> Option<BootLook> {
        let look = shared::first_look().filter(|_| !self.has_boot)?;
        self.has_boot = true;
        Some(look)
    }

    fn append(&mut self, record: Record) {
        history::append(&record);
        self.last = Some(record);
        self.added += 1;
        // Trimming rewrites the whole file, so it waits for a tenth of it.
        if self.added * 10 > settings::history_size() {
            history::trim();
            self.added = 0;
        }
    }
}

/// The last record since the server started; if none could be written, that of the last start.
fn before_first_sample(now: &Record) -> Option<Record> {
    let recorded = history::last(&now.instance).filter(|last| last.is_of_same_start_as(now));
    recorded.or_else(|| shmem::last_start().map(|start| start.record))
}
