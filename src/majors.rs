//! The differences between PostgreSQL's majors. No other file of the extension has code for one major only.

use pgrx::pg_sys;

/// Whether shared_memory_size_in_huge_pages is one page too many if the segment fills its pages exactly (ipci.c,
/// `InitializeShmemGUCs`).
pub const COUNTS_ONE_PAGE_TOO_MANY: bool = cfg!(not(feature = "pg19"));

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
        #[cfg(any(feature = "pg18", feature = "pg19"))]
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
