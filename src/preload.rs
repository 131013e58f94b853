//! What only a preloaded library can know: how often this postmaster has allocated shared memory.
//!
//! `shmem_startup_hook` runs in the postmaster at every allocation, a restart after a crash included, while `_PG_init`
//! does not; a counter there reaches every backend by fork(2).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

use pgrx::pg_sys;
use pgrx::prelude::*;

/// Zero: the library was not preloaded.
static GENERATION: AtomicI64 = AtomicI64::new(0);
static PREVIOUS_HOOK: OnceLock<pg_sys::shmem_startup_hook_type> = OnceLock::new();

/// The number of allocations of shared memory by this postmaster, `None` if the library is not preloaded.
pub fn generation() -> Option<i64> {
    Some(GENERATION.load(Ordering::Relaxed)).filter(|&count| count > 0)
}

/// Hooks into the postmaster's start; does nothing in a library that is not preloaded.
#[allow(unsafe_code)]
pub fn install() {
    // SAFETY: _PG_init of a preloaded library runs in the postmaster alone, before anything reads or runs the hook.
    unsafe {
        if !pg_sys::process_shared_preload_libraries_in_progress
            || PREVIOUS_HOOK.set(pg_sys::shmem_startup_hook).is_err()
        {
            return;
        }
        pg_sys::shmem_startup_hook = Some(shared_memory_allocated);
    }
}

/// Must never raise an error: the postmaster would die of it.
#[pg_guard]
extern "C-unwind" fn shared_memory_allocated() {
    if let Some(Some(previous)) = PREVIOUS_HOOK.get() {
        // SAFETY: the hook that was installed before ours expects to be called at this very moment.
        #[allow(unsafe_code)]
        unsafe {
            previous();
        }
    }
    GENERATION.fetch_add(1, Ordering::Relaxed);
}
