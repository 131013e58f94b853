//! What happens each time the postmaster has allocated shared memory: a block in the log, a record in the history.

use std::sync::Mutex;
use std::time::SystemTime;

use hugepage_core::advise::events::{self, LogLevel};
use hugepage_core::advise::log as words;
use hugepage_core::assess::Status;
use hugepage_core::history::{Event, Record};
use hugepage_core::model::{Cause, Loss};
use hugepage_core::notes::Notes;
use hugepage_core::read::Root;

use crate::{assessment, history, log, server, settings, shmem};

/// What was so at the last allocation; inherited by every process of the server.
static LAST: Mutex<Option<AtStart>> = Mutex::new(None);

/// What later looks can't find out any more.
#[derive(Clone, Debug)]
pub struct AtStart {
    /// Why the segment was not put where it was asked for.
    pub cause: Option<Cause>,
    /// What the start lost against the one before.
    pub loss: Option<Loss>,
    /// The block that was logged.
    pub block: words::LogMessage,
    /// What was recorded, or would have been if it could be.
    pub record: Record,
}

/// `None` if the library is not preloaded.
pub fn last() -> Option<AtStart> {
    LAST.lock().ok()?.clone()
}

/// The cause and the loss of the last allocation alone, which every assessment asks for.
pub fn cause_and_loss() -> (Option<Cause>, Option<Loss>) {
    let last = LAST.lock();
    let last = last.as_ref().ok().and_then(|last| last.as_ref());
    (last.and_then(|start| start.cause), last.and_then(|start| start.loss.clone()))
}

/// In the postmaster. Nothing that goes wrong here may reach it.
pub fn shared_memory_allocated() {
    log::shielded("look at shared memory", || {
        // What was found in an earlier allocation is not so any more.
        server::forget_main_mapping();
        if let Ok(mut last) = LAST.lock() {
            *last = None;
        }
        let mut notes = Notes::default();
        let status = assessment::at_allocation(&Root::live(), &mut notes);
        announce(&status, notes);
    });
}

fn announce(status: &Status, mut notes: Notes) {
    let event = if shmem::generation() == Some(1) { Event::Start } else { Event::CrashRestart };
    let mut record = history::record(event, status, &mut notes);
    let lost = match history::last(&record.instance) {
        Some(before) => record.compare_with(&before),
        None => None,
    };
    let block = words::allocated(status, lost.as_ref(), &notes.into_vec());
    report(&block, lost.is_some());
    history::append(&record);
    let loss = lost.map(|lost| Loss { at: SystemTime::now(), lost });
    if let Ok(mut last) = LAST.lock() {
        *last = Some(AtStart { cause: status.cause, loss, block, record });
    }
}

/// Logs a block at the level that it deserves, or not at all.
pub fn report(block: &words::LogMessage, is_regression: bool) {
    let level = events::level_of_start(block, is_regression);
    if level != LogLevel::Log || settings::log_startup() {
        log::report_as(level, block.clone());
    }
}
