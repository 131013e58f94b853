//! A standby that has less room than its primary does not start (xlogrecovery.c, `CheckRequiredParameterValues`).

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;

use hugepage_core::model::CrashRecovery;
use hugepage_core::read::pg_control::RecoveryParameters;
use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::server;

/// A checkpoint may write pg_control while it is read.
const MAX_ATTEMPTS: usize = 3;

/// The server's error text, if a start with these settings would abort recovery; `None` on a primary.
pub fn refusal(own: &RecoveryParameters) -> Option<String> {
    if !own.hot_standby || !starts_as_standby() {
        return None;
    }
    own.refusal(&of_primary()?)
}

/// Whether this server, if it is a standby, would recover after a crash, which keeps the running settings. A standby that runs
/// may have less than its primary has got since: its recovery is paused then.
#[allow(unsafe_code)]
pub fn crash_recovery() -> CrashRecovery {
    // SAFETY: reads a flag in shared memory, which this process has.
    if !unsafe { pg_sys::RecoveryInProgress() } {
        return CrashRecovery::Possible;
    }
    refusal(&server::recovery_parameters()).map_or(CrashRecovery::Possible, CrashRecovery::Refused)
}

/// Whether the next start replays a primary's log (xlogrecovery.c, `readRecoverySignalFile`).
fn starts_as_standby() -> bool {
    let data = server::data_directory();
    ["standby.signal", "recovery.signal"].iter().any(|name| data.join(name).exists())
}

/// The primary's settings as the log told them last, from pg_control; `None` if that can't be read.
#[allow(unsafe_code)]
fn of_primary() -> Option<RecoveryParameters> {
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
