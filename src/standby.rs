//! A standby that has less room than its primary does not start (xlogrecovery.c, `CheckRequiredParameterValues`).

use hugepage_assess::model::CrashRecovery;
use hugepage_kernel::postgresql::pg_control::{self, PgControl, RecoveryParameters, SIGNAL_FILES};
use hugepage_kernel::{InstanceFiles, ROOT};
use pgrx::pg_sys;

use crate::server;

/// Whether a file tells the next start that it is a standby's, or recovers from an archive.
#[expect(clippy::disallowed_methods, reason = "the server's own directory")]
pub fn has_signal_file() -> bool {
    let data = server::data_directory();
    SIGNAL_FILES.iter().any(|name| data.join(name).exists())
}

/// The primary's settings, as the log told them last (pg_control), with which a start of this server as a standby compares its own;
/// `None` if it does not start as one, or they can't be read.
pub fn primary() -> Option<RecoveryParameters> {
    if !has_signal_file() {
        return None;
    }
    let path = server::data_directory().join("global/pg_control");
    let files = InstanceFiles::own(&ROOT);
    let bytes = files
        .read_first(&path.to_string_lossy(), pg_control::LENGTH)
        .ok()?;
    PgControl::parse(&bytes).map(|control| control.parameters)
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
