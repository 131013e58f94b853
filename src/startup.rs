//! Runs in the postmaster each time it has allocated shared memory: one message in the log, one record in the history.

use hugepage_assess::advice::events::allocated;
use hugepage_assess::assessment::Status;
use hugepage_assess::history::Event;
use hugepage_kernel::Root;
use hugepage_kernel::notes::Notes;

use crate::shmem::{self, LastAllocation};
use crate::{assessment, history, log, memory, server};

/// Assesses, logs and records an allocation. Any error ends in the log, none reaches the postmaster.
pub fn shared_memory_allocated() {
    log::forget_problems();
    log::catch_errors("assess shared memory", memory::USUAL, || {
        // Results of an earlier allocation are outdated.
        server::forget_hierarchy();
        shmem::set_last_start(None);
        let mut notes = Notes::default();
        let status = assessment::at_allocation(&Root::live(), &mut notes);
        log_and_record(&status, notes);
    });
}

fn log_and_record(status: &Status, mut notes: Notes) {
    let event = if shmem::generation() == Some(1) { Event::Start } else { Event::CrashRestart };
    let mut record = history::record(event, status, &mut notes);
    let lost = match history::last(&record.instance) {
        Some(before) => record.compare_with(&before),
        None => None,
    };
    let message = allocated(status, lost.as_ref(), &notes.into_vec());
    log::write(message.clone());
    history::append(&record);
    // As every reader of the history has it.
    let loss = record.loss();
    shmem::set_last_start(Some(LastAllocation { cause: status.cause, loss, message, record }));
}

/// Logs the message of the first start again, if the logging collector did not run yet and nobody has repeated it; the problems
/// of that time, too. In the worker; without one, in the first session that looks.
pub fn repeat_unless_heard() {
    if shmem::claim_startup_repeat()
        && let Some(start) = shmem::last_start()
    {
        log::write(start.message);
        log::repeat_problems();
    }
}
