//! A standby that has less room than its primary does not start (xlogrecovery.c, `CheckRequiredParameterValues`).

use hugepage_assess::model::CrashRecovery;
use hugepage_kernel::postgresql::pg_control::{self, PgControl, RecoveryParameters, SIGNAL_FILES};
use hugepage_kernel::{InstanceFiles, Root};
use pgrx::pg_sys;

use crate::server;

/// The primary's settings with which a start of this server as a standby compares its own; `None` if it does not start as one.
#[expect(clippy::disallowed_methods, reason = "the server's own directory")]
pub fn primary() -> Option<RecoveryParameters> {
    let data = server::data_directory();
    let is_standby = SIGNAL_FILES.iter().any(|name| data.join(name).exists());
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
fn of_control_file() -> Option<RecoveryParameters> {
    let path = server::data_directory().join("global/pg_control");
    let files = InstanceFiles::own(&Root::live());
    let bytes = files.read_first(&path.to_string_lossy(), pg_control::LENGTH).ok()?;
    PgControl::parse(&bytes).map(|control| control.parameters)
}
