//! What only a preloaded library can do: be there when shared memory is allocated, and run a worker.
//!
//! `shmem_startup_hook` runs in the postmaster at every allocation, a restart after a crash included, while `_PG_init`
//! does not; what is kept in static variables there reaches every process of the server by fork(2).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};
use std::time::{Duration, SystemTime};

use hugepage_core::assess::Threat;
use pgrx::atomics::PgAtomic;
use pgrx::prelude::*;
use pgrx::{pg_shmem_init, pg_sys};

use crate::{startup, worker};

/// Zero: the library was not preloaded.
static GENERATION: AtomicI64 = AtomicI64::new(0);
static PREVIOUS_HOOK: OnceLock<pg_sys::shmem_startup_hook_type> = OnceLock::new();

/// Whether a worker has repeated the block of the first start, see [`claim_repeat`]. In shared memory, because a
/// worker that is started again must know what the one before has said.
// SAFETY: the name is the extension's own.
#[allow(unsafe_code)]
static REPEATED: PgAtomic<AtomicBool> = unsafe { PgAtomic::new(c"pg_hugepages repeated") };
/// The threats that a worker has warned of, a set of bits, see [`warn_of`].
// SAFETY: as above.
#[allow(unsafe_code)]
static WARNED_OF: PgAtomic<AtomicU8> = unsafe { PgAtomic::new(c"pg_hugepages warned of") };

/// The number of allocations of shared memory by this postmaster, `None` if the library is not preloaded.
pub fn generation() -> Option<i64> {
    Some(GENERATION.load(Ordering::Relaxed)).filter(|&count| count > 0)
}

/// When the postmaster process started; in another process, when that one did.
#[allow(unsafe_code)]
pub fn postmaster_start() -> SystemTime {
    // SAFETY: set when the process starts.
    let own = unsafe { pg_sys::MyStartTimestamp };
    static OF_POSTMASTER: OnceLock<pg_sys::TimestampTz> = OnceLock::new();
    let since_2000 = *OF_POSTMASTER.get_or_init(|| own);
    const YEAR_2000: Duration = Duration::from_secs(946_684_800);
    SystemTime::UNIX_EPOCH + YEAR_2000 + Duration::from_micros(since_2000.unsigned_abs())
}

/// True once in the life of a server whose first block went to the postmaster's standard error alone, because the
/// logging collector starts after shared memory is allocated. Later blocks reach the collector by themselves.
#[allow(unsafe_code)]
pub fn claim_repeat() -> bool {
    // SAFETY: set when the server starts and never after.
    let collected = unsafe { pg_sys::Logging_collector };
    collected && generation() == Some(1) && !REPEATED.get().swap(true, Ordering::Relaxed)
}

/// Notes that these threats are warned of, and no others, and returns those that were since shared memory was allocated.
pub fn warn_of(threats: &[Threat]) -> Vec<Threat> {
    let set = threats.iter().fold(0, |set, &threat| set | threat as u8);
    let before = WARNED_OF.get().swap(set, Ordering::Relaxed);
    Threat::ALL.into_iter().filter(|&threat| before & threat as u8 != 0).collect()
}

/// Hooks into the postmaster's start and registers the worker; does nothing in a library that is not preloaded.
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
    request_shared_memory();
    worker::register();
}

fn request_shared_memory() {
    {
        pg_shmem_init!(REPEATED = AtomicBool::new(false));
    }
    {
        pg_shmem_init!(WARNED_OF = AtomicU8::new(0));
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
    // A single-user server has nobody to tell.
    // SAFETY: both are set when the process starts.
    #[allow(unsafe_code)]
    let in_postmaster = unsafe { pg_sys::IsPostmasterEnvironment && !pg_sys::IsUnderPostmaster };
    if in_postmaster {
        GENERATION.fetch_add(1, Ordering::Relaxed);
        startup::shared_memory_allocated();
    }
}
