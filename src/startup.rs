//! What a preloaded library does when the server starts: it looks at shared memory each time it was allocated, with one message in the
//! log and one record in the history.
//!
//! The postmaster runs `shmem_startup_hook` at every allocation, that of a crash restart included; it runs `_PG_init` once.

use std::sync::OnceLock;

use hugepage_assess::advice::events::allocated;
use hugepage_assess::history::Event;
use hugepage_kernel::Notes;
use pgrx::prelude::*;
use pgrx::{pg_shmem_init, pg_sys};

use crate::asker::{TURN, Turn};
use crate::next_start::NextRestart;
use crate::shared::{self, SHARED, Shared};
use crate::shmem::{self, LastAllocation};
use crate::{assessment, history, log, memory, server};

static PREVIOUS_SHMEM_STARTUP_HOOK: OnceLock<pg_sys::shmem_startup_hook_type> = OnceLock::new();

/// Installs the hook; returns whether the library is preloaded: in another nothing is to be installed.
#[allow(unsafe_code)]
pub fn install() -> bool {
    // SAFETY: _PG_init of a preloaded library runs in the postmaster alone, before anything reads or runs the hook.
    unsafe {
        if !pg_sys::process_shared_preload_libraries_in_progress
            || PREVIOUS_SHMEM_STARTUP_HOOK
                .set(pg_sys::shmem_startup_hook)
                .is_err()
        {
            return false;
        }
        pg_sys::shmem_startup_hook = Some(shmem_startup);
    }
    {
        pg_shmem_init!(SHARED = Shared::default());
    }
    {
        pg_shmem_init!(TURN = Turn::default());
    }
    true
}

/// Never raises an error, which would end the postmaster.
#[pg_guard]
extern "C-unwind" fn shmem_startup() {
    if let Some(Some(previous)) = PREVIOUS_SHMEM_STARTUP_HOOK.get() {
        // SAFETY: each hook calls the one that was installed before it; an error of it passes through this one.
        #[allow(unsafe_code)]
        unsafe {
            pg_sys::ffi::pg_guard_ffi_boundary(|| previous());
        }
    }
    // A single-user server has no log to read and no next start to compare with. SAFETY: both are set when the process starts.
    #[allow(unsafe_code)]
    let in_postmaster = unsafe { pg_sys::IsPostmasterEnvironment && !pg_sys::IsUnderPostmaster };
    if in_postmaster {
        if shmem::generation().is_none() {
            // Right after the configuration was loaded; all processes inherit what it was.
            log::catch_errors("look at the configuration", memory::USUAL, || {
                NextRestart::now();
            });
        }
        shmem::count_allocation();
        shared_memory_allocated();
    }
}

/// Assesses, logs and records an allocation. Any error ends in the log, none reaches the postmaster.
fn shared_memory_allocated() {
    log::forget_problems();
    log::catch_errors("assess shared memory", memory::USUAL, || {
        // Results of an earlier allocation are outdated.
        server::forget_hierarchy();
        shmem::set_last_start(None);
        let mut notes = Notes::default();
        let status = assessment::assess(None, None, &mut notes);
        let event = if shmem::generation() == Some(1) {
            Event::Start
        } else {
            Event::CrashRestart
        };
        let mut record = history::record(event, &status, &mut notes);
        let lost = history::last(&record.instance).and_then(|before| record.compare_with(&before));
        let message = allocated(&status, lost.as_ref(), &notes.into_vec());
        log::write(message.clone());
        history::append(&record);
        shmem::set_last_start(Some(LastAllocation { message, record }));
    });
}

/// Logs the message of the first start again, if the logging collector did not run yet and nobody has repeated it; the problems
/// of that time, too. In the worker; without one, in the first session that looks.
pub fn repeat_unless_heard() {
    if shared::claim_startup_repeat()
        && let Some(start) = shmem::last_start()
    {
        log::write(start.message);
        log::repeat_problems();
    }
}
