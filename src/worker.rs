//! The background worker: repeats the startup message for the logging collector, trims the history file, and warns
//! before a restart loses huge pages.
//!
//! - It has no database, so it runs on a primary and on a standby and blocks no DROP DATABASE. It connects all the
//!   same, so that pg_stat_activity shows it.
//! - Each sample (`pg_hugepages.sample_interval`, and every reload) reads what `hugepage_status` reads, and compares it
//!   with the last record of the history; if none could be written, with the last start.
//! - Before a sample, if the configuration on disk differs from what runs, it asks the server's program what a start would need:
//!   once for each change, and at most once a minute. Every view reads that answer from shared memory.
//! - The threats that it has warned of are in shared memory, so that a new worker does not warn of them again.
//! - An error in a sample is one line in the log; the next sample follows.
//! - On SIGTERM it ends with status 1, so that the postmaster starts a new one unless the server stops.

use std::time::Duration;

use hugepage_assess::advice::events;
use hugepage_assess::history::{Event, Record};
use hugepage_kernel::Root;
use hugepage_kernel::notes::Notes;
use pgrx::bgworkers::{BackgroundWorker, BackgroundWorkerBuilder, BgWorkerStartTime, SignalWakeFlags};
use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::preflight::next_start::Comparison;
use crate::preflight::{self, Answer, Overrides};
use crate::settings::{self, SettingValues};
use crate::{assessment, history, latch, log, memory, shmem, startup};

/// The time that the postmaster waits before it starts a new worker.
const RESTART_DELAY: Duration = Duration::from_secs(10);
/// The shortest time between two questions to the server's program.
const MIN_PAUSE: Duration = Duration::from_secs(60);
/// An unknown answer is asked for again after one pause, then after twice the pause before, at most after so many doublings.
const MAX_DOUBLINGS: u32 = 6;

/// Registers the worker; in `_PG_init` of a preloaded library.
pub fn register() {
    BackgroundWorkerBuilder::new("pg_hugepages")
        .set_type("pg_hugepages")
        .set_library("pg_hugepages")
        .set_function("pg_hugepages_worker_main")
        .enable_spi_access()
        .set_start_time(BgWorkerStartTime::ConsistentState)
        .set_restart_time(Some(RESTART_DELAY))
        .load();
}

/// Entry point of the worker process.
#[pg_guard]
#[unsafe(no_mangle)]
#[allow(unsafe_code)]
pub extern "C-unwind" fn pg_hugepages_worker_main(_argument: pg_sys::Datum) {
    BackgroundWorker::attach_signal_handlers(SignalWakeFlags::SIGHUP | SignalWakeFlags::SIGTERM);
    BackgroundWorker::connect_worker_to_spi(None, None);
    log::catch_errors("start the worker", memory::USUAL, || {
        if shmem::claim_startup_repeat()
            && let Some(start) = shmem::last_start()
        {
            startup::report(&start.message, start.loss.is_some());
            log::repeat_problems();
        }
        history::trim();
    });
    let mut worker =
        Worker { last: None, settings: settings::reloadable(), added: 0, question: None, must_wait: false };
    let mut event = Event::Change;
    while !latch::is_stopping() {
        let interval = settings::sample_interval();
        let mut pause = None;
        log::catch_errors("assess shared memory", memory::USUAL, || {
            pause = worker.ask();
            // What is about to be known is no change of the outlook.
            if worker.must_wait || latch::is_stopping() {
                return;
            }
            match std::mem::replace(&mut event, Event::Change) {
                Event::Reload => worker.reloaded(),
                _ if interval.is_some() => worker.sample(Event::Change, Vec::new()),
                _ => {}
            }
        });
        if !BackgroundWorker::wait_latch(interval.into_iter().chain(pause).min()) {
            break;
        }
        if BackgroundWorker::sighup_received() {
            // SAFETY: in the main loop of a worker, between samples.
            unsafe { pg_sys::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP) };
            event = Event::Reload;
        }
    }
    // SAFETY: the regular end of a process of the server.
    unsafe { pg_sys::proc_exit(1) };
}

/// A question to the server's program that had no answer.
struct OpenQuestion {
    fingerprint: u64,
    attempts: u32,
}

/// The state between two samples.
struct Worker {
    /// The last record; `None` before the first sample.
    last: Option<Record>,
    settings: SettingValues,
    /// Records that this worker has appended since the file was last trimmed.
    added: usize,
    /// The last question without an answer; `None` if there is none.
    question: Option<OpenQuestion>,
    /// Whether a new question has to wait, because the program was asked within the last minute.
    must_wait: bool,
}

impl Worker {
    /// Asks the server's program what a start would need, where the configuration on disk differs and the answer is not
    /// known. Returns the time until it may be asked; `None` if there is nothing to ask.
    fn ask(&mut self) -> Option<Duration> {
        self.must_wait = false;
        let root = Root::live();
        let comparison = Comparison::now(&root);
        let fingerprint = comparison.fingerprint();
        let open = self.question.take().filter(|open| open.fingerprint == fingerprint);
        let on_disk = comparison.question(&root).filter(|_| settings::ask_server_program())?;
        let known = shmem::answer(fingerprint);
        if !matches!(known, None | Some(Answer::Unknown(_))) {
            return None;
        }
        let mut attempts = open.map_or(0, |open| open.attempts);
        let pause = MIN_PAUSE * (1 << attempts.saturating_sub(1).min(MAX_DOUBLINGS));
        let mut left = shmem::since_last_question().map_or(Duration::ZERO, |since| pause.saturating_sub(since));
        if left.is_zero() {
            let answer = preflight::ask(on_disk, Overrides::default());
            shmem::set_answer(fingerprint, &answer);
            if !matches!(answer, Answer::Unknown(_)) {
                return None;
            }
            (attempts, left) = (attempts + 1, pause);
        }
        self.must_wait = known.is_none() && attempts == 0;
        self.question = Some(OpenQuestion { fingerprint, attempts });
        Some(left)
    }

    /// Assesses shared memory, and logs and records what has changed. `reloaded`: our settings that a reload changed.
    fn sample(&mut self, event: Event, reloaded: Vec<String>) {
        let mut notes = Notes::default();
        let status = assessment::now(&Root::live(), &mut notes);
        let record = history::record(event, &status, &mut notes);
        let before = self.last.take().or_else(|| before_first_sample(&record));
        let warned = shmem::warned_threats();
        shmem::set_warned_threats(&events::standing(&status, &warned));
        let update = events::update(&status, record, before.as_ref(), &warned, reloaded);
        for (level, message) in update.messages {
            log::report_as(level, message);
        }
        match update.record {
            Some(record) => self.append(record),
            None => self.last = before,
        }
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

    /// Records a reload if it changed one of our settings, or the outlook.
    fn reloaded(&mut self) {
        let settings = settings::reloadable();
        let changes = settings.changes_since(&self.settings);
        self.settings = settings;
        self.sample(Event::Reload, changes);
    }
}

/// The last record since the server started; if none could be written, that of the last start.
fn before_first_sample(now: &Record) -> Option<Record> {
    let recorded = history::last(&now.instance).filter(|last| last.is_of_same_start_as(now));
    recorded.or_else(|| shmem::last_start().map(|start| start.record))
}
