//! A standby that has less room than its primary does not start (xlogrecovery.c, `CheckRequiredParameterValues`).

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::LazyLock;

use hugepage_core::model::CrashRecovery;
use hugepage_core::read::pg_control::{RecoveryParameters, SIGNAL_FILES};
use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::server;

/// A checkpoint may write pg_control while it is read.
const MAX_ATTEMPTS: usize = 3;

/// The primary's settings with which a start of this server as a standby compares its own; `None` if it does not start as one.
pub fn primary() -> Option<RecoveryParameters> {
    // Their paths never change, and each call asks for them.
    static PATHS: LazyLock<[PathBuf; 2]> =
        LazyLock::new(|| SIGNAL_FILES.map(|name| server::data_directory().join(name)));
    let is_standby = PATHS.iter().any(|path| path.exists());
    if is_standby { of_control_file() } else { None }
}

/// Whether this server, if it is a standby of `primary`, would recover after a crash, which keeps the running settings. A
/// standby that runs may have less than its primary has got since: its recovery is paused then.
#[allow(unsafe_code)]
pub fn crash_recovery(primary: Option<&RecoveryParameters>) -> CrashRecovery {
    // SAFETY: reads a flag in shared memory, which this process has.
    let primary = primary.filter(|_| unsafe { pg_sys::RecoveryInProgress() });
    let refusal = primary.and_then(|primary| server::recovery_parameters().refusal(primary));
    refusal.map_or(CrashRecovery::Possible, CrashRecovery::Refused)
}

/// The primary's settings as the log told them last, from pg_control; `None` if that can't be read.
#[allow(unsafe_code)]
fn of_control_file() -> Option<RecoveryParameters> {
    let data = CString::new(server::data_directory().as_os_str().as_bytes()).ok()?;
    (0..MAX_ATTEMPTS).find_map(|_| {
        let (control, is_intact) = PgTryBuilder::new(|| {
            let mut is_intact = false;
            // SAFETY: the path ends in a zero byte, and the flag is a local variable.
            (unsafe { pg_sys::get_controlfile(data.as_ptr(), &mut is_intact) }, is_intact)
        })
        .catch_others(|_| (std::ptr::null_mut(), false))
        .execute();
        // SAFETY: null, or a struct that this call has allocated.
        let found = unsafe { control.as_ref() }.filter(|_| is_intact).map(|control| RecoveryParameters {
            hot_standby: true,
            max_connections: control.MaxConnections,
            max_worker_processes: control.max_worker_processes,
            max_wal_senders: control.max_wal_senders,
            max_prepared_transactions: control.max_prepared_xacts,
            max_locks_per_transaction: control.max_locks_per_xact,
        });
        if !control.is_null() {
            // SAFETY: as above; nothing refers to it any more.
            unsafe { pg_sys::pfree(control.cast()) };
        }
        found
    })
}
