//! The background worker: says what the logging collector missed, and warns before a restart loses huge pages.
//!
//! It has no database, so that it runs on a primary and on a standby and keeps nobody from dropping one; it is
//! connected all the same, so that pg_stat_activity shows it. It ends with status 1 when it is asked to, so that the
//! postmaster brings it back unless the server stops. Each tick reads what `hugepage_status` reads and compares that
//! with the last record of the history, or, if nothing could be written, with what there was at the start. What a
//! worker has warned of stands in shared memory, so that the next one does not say it again.
//! Whatever goes wrong in a tick is one line in the log, and the next tick.

use std::time::Duration;

use hugepage_core::advise::events;
use hugepage_core::history::{Event, Record};
use hugepage_core::notes::Notes;
use hugepage_core::read::Root;
use pgrx::bgworkers::{BackgroundWorker, BackgroundWorkerBuilder, BgWorkerStartTime, SignalWakeFlags};
use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::{assessment, history, log, settings, shmem, startup};

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
        if shmem::claim_repeat()
            && let Some(start) = startup::last()
        {
            startup::report(&start.block, start.loss.is_some());
            log::repeat_troubles();
        }
        history::tidy();
    });
    let mut watch = Watch { last: None, settings: settings::reloadable(), added: 0 };
    loop {
        let interval = settings::sample_interval();
        if interval.is_some() {
            log::shielded("look at shared memory", || watch.look(Event::Change, Vec::new()));
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
struct Watch {
    /// `None` before the first look.
    last: Option<Record>,
    settings: settings::Reloadable,
    /// How many records this worker has added since the file was last cut to size.
    added: usize,
}

impl Watch {
    /// Looks, and says and records what is new; `reloaded`: what a reload has changed in our settings.
    fn look(&mut self, event: Event, reloaded: Vec<String>) {
        let mut notes = Notes::default();
        let status = assessment::now(&Root::live(), &mut notes);
        let record = history::record(event, &status, &mut notes);
        let before = self.last.take().or_else(|| before_first_look(&record));
        let warned = shmem::warn_of(&status.threats());
        let update = events::update(&status, record, before.as_ref(), &warned, reloaded);
        for (level, message) in update.messages {
            log::report_as(level, message);
        }
        match update.record {
            Some(record) => self.add(record),
            None => self.last = before,
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

    /// After a reload: a record if it changed a setting of ours, or what the next start would get.
    fn reloaded(&mut self) {
        let settings = settings::reloadable();
        let changes = settings.changes_since(&self.settings);
        self.settings = settings;
        self.look(Event::Reload, changes);
    }
}

/// The last record since the server started; if nothing could be written, what would be.
fn before_first_look(now: &Record) -> Option<Record> {
    let recorded = history::last(&now.instance).filter(|last| last.is_of_same_start_as(now));
    recorded.or_else(|| startup::last().map(|start| start.record))
}
