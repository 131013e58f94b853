//! The hooks of a preloaded library: it is called when shared memory is allocated, and runs a worker.
//!
//! The postmaster runs `shmem_startup_hook` at every allocation, that of a crash restart included; it runs `_PG_init` once.

use std::sync::OnceLock;

use pgrx::prelude::*;
use pgrx::{pg_shmem_init, pg_sys};

use crate::found::{FOUND, Found};
use crate::shmem::{self, SHARED_STATE, SharedState};
use crate::{startup, worker};

static PREVIOUS_SHMEM_STARTUP_HOOK: OnceLock<pg_sys::shmem_startup_hook_type> = OnceLock::new();

/// Installs the hooks and registers the worker; does nothing in a library that is not preloaded.
#[allow(unsafe_code)]
pub fn install() {
    // SAFETY: _PG_init of a preloaded library runs in the postmaster alone, before anything reads or runs the hook.
    unsafe {
        if !pg_sys::process_shared_preload_libraries_in_progress
            || PREVIOUS_SHMEM_STARTUP_HOOK.set(pg_sys::shmem_startup_hook).is_err()
        {
            return;
        }
        pg_sys::shmem_startup_hook = Some(shmem_startup);
    }
    {
        pg_shmem_init!(SHARED_STATE = SharedState::default());
    }
    {
        pg_shmem_init!(FOUND = Found::default());
    }
    worker::register();
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
        shmem::count_allocation();
        startup::shared_memory_allocated();
    }
}
