//! The background worker: says what the logging collector missed, and warns before a restart loses huge pages.
//!
//! It has no database, so that it runs on a primary and on a standby and keeps nobody from dropping one; it is
//! connected all the same, so that pg_stat_activity shows it. It ends with status 1 when it is asked to, so that the
//! postmaster brings it back unless the server stops. Each tick reads what `hugepage_status` reads and compares that
//! with the last record of the history: what it said before it said there, so a new worker does not say it again.
//! Whatever goes wrong in a tick is one line in the log, and the next tick.

use std::time::Duration;

use hugepage_core::advise::log as words;
use hugepage_core::assess::Status;
use hugepage_core::history::{Event, Lost, Record};
use hugepage_core::notes::Notes;
use hugepage_core::read::Root;
use pgrx::bgworkers::{BackgroundWorker, BackgroundWorkerBuilder, BgWorkerStartTime, SignalWakeFlags};
use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::{history, log, preload, server, settings, startup};

/// How soon the postmaster brings back a worker that has ended.
const RESTART: Duration = Duration::from_secs(5);

/// Registers the worker; in `_PG_init` of a preloaded library.
pub fn register() {
    BackgroundWorkerBuilder::new("pg_hugepages")
        .set_type("pg_hugepages")
        .set_library("pg_hugepages")
        .set_function("pg_hugepages_worker_main")
        .enable_spi_access()
        .set_start_time(BgWorkerStartTime::ConsistentState)
        .set_restart_time(Some(RESTART))
        .load();
}

/// Entry point of the worker process.
#[pg_guard]
#[unsafe(no_mangle)]
#[allow(unsafe_code)]
pub extern "C-unwind" fn pg_hugepages_worker_main(_argument: pg_sys::Datum) {
    BackgroundWorker::attach_signal_handlers(SignalWakeFlags::SIGHUP | SignalWakeFlags::SIGTERM);
    BackgroundWorker::connect_worker_to_spi(None, None);
    log::shielded("start", || {
        if preload::claim_repeat()
            && let Some(start) = startup::last()
        {
            startup::report(&start.block, start.loss.is_some());
        }
        history::tidy();
    });
    let mut watch = Watch::default();
    loop {
        let interval = settings::sample_interval();
        if interval.is_some() {
            log::shielded("look at shared memory", || watch.tick(Event::Change));
        }
        if !BackgroundWorker::wait_latch(interval) {
            // SAFETY: the regular end of a process of the server.
            unsafe { pg_sys::proc_exit(1) };
        }
        if BackgroundWorker::sighup_received() {
            // SAFETY: in the main loop of a worker, between ticks.
            unsafe { pg_sys::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP) };
            log::shielded("look at shared memory", || watch.reloaded());
        }
    }
}

/// What the worker knows from its last look.
#[derive(Default)]
struct Watch {
    last: Option<Record>,
    settings: settings::Reloadable,
    /// How many records this worker has added since the file was last cut to size.
    added: usize,
}

impl Watch {
    /// Looks, and says what is new.
    fn tick(&mut self, event: Event) {
        let mut notes = Notes::default();
        let status = server::assess(&Root::live(), &mut notes);
        let mut record = history::record(event, &status, &mut notes);
        let before = match self.last.take() {
            Some(before) => Some(before),
            None => {
                self.settings = settings::reloadable();
                history::last(&record.instance)
            }
        };
        match before {
            Some(before) if !record.differs_from(&before) && event == Event::Change => self.last = Some(before),
            Some(before) => {
                let lost = record.compare_with(&before);
                self.say(&status, before.is_bad(), lost);
                self.add(record);
            }
            // No history yet, or none that can be written: the start has been announced all the same.
            None => {
                self.say(&status, false, None);
                self.add(record);
            }
        }
        for note in notes.into_vec() {
            log::trouble(note);
        }
    }

    /// One message when the outlook turns bad, one when it is well again, one for what was lost otherwise.
    fn say(&self, status: &Status, was_bad: bool, lost: Option<Lost>) {
        match (was_bad, words::is_bad(status)) {
            (false, true) => log::report(PgLogLevel::WARNING, words::outlook_turned_bad(status)),
            (true, false) => log::report(PgLogLevel::LOG, words::outlook_recovered(status)),
            _ => {
                if lost.is_some() {
                    log::report(settings::regression_level(), words::allocated(status, lost.as_ref()));
                }
            }
        }
    }

    fn add(&mut self, record: Record) {
        history::append(&record);
        self.last = Some(record);
        self.added += 1;
        // Cutting rewrites the file, so not for each record.
        if self.added * 10 > settings::history_size() {
            history::tidy();
            self.added = 0;
        }
    }

    /// After a reload: a record if it changed a setting of ours or the state.
    fn reloaded(&mut self) {
        let settings = settings::reloadable();
        if settings != std::mem::replace(&mut self.settings, settings.clone()) {
            self.tick(Event::Reload);
        }
    }
}
