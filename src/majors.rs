//! The differences between PostgreSQL's majors. No other file of the extension has code for one major only.
//!
//! Each names the older majors, so that a major without a feature here, as a development branch is, counts as the newest known one.

use pgrx::pg_sys;

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

/// Gives a set-returning function a tuplestore with the columns that its caller expects; an error where none is (funcapi.c).
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

/// Shows the records of the server's parameters (guc_tables.h), of which a session may have added any number, to `take`.
///
/// # Safety
/// None may be used after the library that has defined its parameter is gone, which the server never unloads.
#[allow(unsafe_code)]
pub unsafe fn each_parameter(take: impl FnMut(*mut pg_sys::config_generic)) {
    // SAFETY: an array of as many pointers as the server says; from 16 on it is a copy.
    unsafe {
        #[cfg(feature = "pg15")]
        let (all, count) = (pg_sys::get_guc_variables(), pg_sys::GetNumConfigOptions());
        #[cfg(not(feature = "pg15"))]
        let (all, count) = {
            let mut count = 0;
            (pg_sys::get_guc_variables(&mut count), count)
        };
        std::slice::from_raw_parts(all, usize::try_from(count).unwrap_or_default())
            .iter()
            .copied()
            .for_each(take);
        #[cfg(not(feature = "pg15"))]
        pg_sys::pfree(all.cast());
    }
}

/// Whether a parameter has a check hook: what that finds may depend on the session (guc_hooks.h).
///
/// # Safety
/// `record` must be one of [`each_parameter`].
#[allow(unsafe_code)]
pub unsafe fn has_check_hook(record: *const pg_sys::config_generic) -> bool {
    use pg_sys::config_type::*;
    // SAFETY: the record of the type that `vartype` has; until 18 it begins with what all have, in 19 it ends with a union.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16", feature = "pg17", feature = "pg18"))]
        macro_rules! record_of {
            ($type:ident, $_field:ident) => {
                (*record.cast::<pg_sys::$type>())
            };
        }
        #[cfg(not(any(feature = "pg15", feature = "pg16", feature = "pg17", feature = "pg18")))]
        macro_rules! record_of {
            ($_type:ident, $field:ident) => {
                (*record).__bindgen_anon_1.$field
            };
        }
        match (*record).vartype {
            PGC_BOOL => record_of!(config_bool, _bool).check_hook.is_some(),
            PGC_INT => record_of!(config_int, _int).check_hook.is_some(),
            PGC_REAL => record_of!(config_real, _real).check_hook.is_some(),
            PGC_STRING => record_of!(config_string, _string).check_hook.is_some(),
            _ => record_of!(config_enum, _enum).check_hook.is_some(),
        }
    }
}

/// Whether the current user may call a function of the server.
///
/// # Safety
/// Only in a transaction.
#[allow(unsafe_code)]
pub unsafe fn may_execute(function: u32) -> bool {
    // SAFETY: as the caller promises; a function of the catalogs.
    unsafe {
        let (function, user) = (pg_sys::Oid::from(function), pg_sys::GetUserId());
        let right = pg_sys::AclMode::from(pg_sys::ACL_EXECUTE);
        #[cfg(feature = "pg15")]
        let answer = pg_sys::pg_proc_aclcheck(function, user, right);
        #[cfg(not(feature = "pg15"))]
        let answer = pg_sys::object_aclcheck(pg_sys::ProcedureRelationId, function, user, right);
        answer == pg_sys::AclResult::ACLCHECK_OK
    }
}

/// A wait event of this extension, as pg_stat_activity shows it: the name from 17 on, `Extension` before.
#[cfg(any(feature = "pg15", feature = "pg16"))]
pub fn wait_event(_name: &'static std::ffi::CStr) -> u32 {
    pg_sys::PG_WAIT_EXTENSION
}

/// A wait event of this extension, by its name in pg_stat_activity (17 and later).
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
pub fn wait_event(name: &'static std::ffi::CStr) -> u32 {
    // SAFETY: a name that ends in a zero byte; the same name has the same event in each process (wait_event.c).
    #[allow(unsafe_code)]
    unsafe {
        pg_sys::WaitEventExtensionNew(name.as_ptr())
    }
}
