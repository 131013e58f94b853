//! The differences between PostgreSQL's majors. No other file of the extension has code for one major only.
//!
//! Each names the older majors, so that a major without a feature here, as a development branch is, counts as the newest
//! known one.

use pgrx::pg_sys;

/// Whether shared_memory_size_in_huge_pages is one page too many if the segment fills its pages exactly (ipci.c,
/// `InitializeShmemGUCs`).
pub const COUNTS_ONE_PAGE_TOO_MANY: bool =
    cfg!(any(feature = "pg15", feature = "pg16", feature = "pg17", feature = "pg18"));

/// Whether the main segment has the same size as long as it exists. From 20 on this is not assumed: patches of 2026 resize
/// it while the server runs.
pub const SEGMENT_KEEPS_ITS_SIZE: bool =
    cfg!(any(feature = "pg15", feature = "pg16", feature = "pg17", feature = "pg18", feature = "pg19"));

/// The auxiliary processes that have an io_uring ring beside all backends: those that are not I/O workers (proc.h,
/// `NUM_AUXILIARY_PROCS`).
pub const PROCESSES_WITH_RING: u64 = 6;

/// `io_max_concurrency` if `io_method` is `io_uring`, which servers have from 18 on.
#[cfg(not(any(feature = "pg15", feature = "pg16", feature = "pg17")))]
pub fn io_uring_entries() -> Option<u64> {
    // SAFETY: the names end in a zero byte; a value is a string of the server that stays until it is changed.
    #[allow(unsafe_code)]
    let setting = |name: &std::ffi::CStr| unsafe {
        let value = pg_sys::GetConfigOption(name.as_ptr(), true, false);
        (!value.is_null()).then(|| std::ffi::CStr::from_ptr(value).to_string_lossy().into_owned())
    };
    let is_io_uring = setting(c"io_method")? == "io_uring";
    is_io_uring.then(|| setting(c"io_max_concurrency")?.parse().ok()).flatten()
}

/// As above.
#[cfg(any(feature = "pg15", feature = "pg16", feature = "pg17"))]
pub fn io_uring_entries() -> Option<u64> {
    None
}

/// The default of `max_locks_per_transaction` (guc_tables.c).
pub const MAX_LOCKS_PER_TRANSACTION: i32 =
    if cfg!(any(feature = "pg15", feature = "pg16", feature = "pg17", feature = "pg18")) { 64 } else { 128 };

/// The server's error for `huge_pages = on` with System V shared memory (sysv_shmem.c, `PGSharedMemoryCreate`).
pub const NO_HUGE_PAGES_IN_SYSV: &str = if cfg!(any(feature = "pg15", feature = "pg16")) {
    "huge pages not supported with the current shared_memory_type setting"
} else {
    "huge pages not supported with the current \"shared_memory_type\" setting"
};

/// The entry of the backend status snapshot at `index`, from 1 (backend_status.c).
///
/// # Safety
/// `index` must be between 1 and `pgstat_fetch_stat_numbackends()` of the current snapshot.
#[allow(unsafe_code)]
pub unsafe fn backend_status(index: i32) -> *const pg_sys::LocalPgBackendStatus {
    // SAFETY: the caller checks the bounds; the entry lives as long as the snapshot.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::pgstat_fetch_stat_local_beentry(index);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::pgstat_get_local_beentry_by_index(index);
    }
}

/// `pg_stat_activity.state` of a backend; `None` for a process without a state.
pub fn state(state: pg_sys::BackendState::Type) -> Option<&'static str> {
    use pg_sys::BackendState::*;
    Some(match state {
        #[cfg(not(any(feature = "pg15", feature = "pg16", feature = "pg17")))]
        STATE_STARTING => "starting",
        STATE_IDLE => "idle",
        STATE_RUNNING => "active",
        STATE_IDLEINTRANSACTION => "idle in transaction",
        STATE_FASTPATH => "fastpath function call",
        STATE_IDLEINTRANSACTION_ABORTED => "idle in transaction (aborted)",
        STATE_DISABLED => "disabled",
        _ => return None,
    })
}

/// Gives a set-returning function a tuplestore, with the columns that its caller expects, in the `resultinfo` of the call; an
/// error where none is expected (funcapi.c).
///
/// # Safety
/// `call` must be a call that goes on.
#[allow(unsafe_code)]
pub unsafe fn init_materialized(call: pg_sys::FunctionCallInfo) {
    // SAFETY: as the caller promises.
    unsafe {
        // 15.0 has it by this name alone.
        #[cfg(feature = "pg15")]
        pg_sys::SetSingleFuncCall(call, pg_sys::SRF_SINGLE_USE_EXPECTED);
        #[cfg(not(feature = "pg15"))]
        pg_sys::InitMaterializedSRF(call, pg_sys::MAT_SRF_USE_EXPECTED_DESC);
    }
}
