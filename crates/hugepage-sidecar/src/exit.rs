//! Exit statuses of monitoring plugins (Monitoring Plugins Development Guidelines), and EX_USAGE of sysexits(3).

use std::process::ExitCode;

use hugepage_assess::assessment::Severity;
use hugepage_host::host_advice::verdict::HostVerdict;

/// An exit status of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    status: u8,
    /// The name that monitoring plugins print.
    pub name: &'static str,
}

/// No problem was found.
pub const OK: Exit = Exit { status: 0, name: "OK" };
/// Huge pages are lost, or will be.
pub const WARNING: Exit = Exit { status: 1, name: "WARNING" };
/// A server would fail, or is at risk.
pub const CRITICAL: Exit = Exit { status: 2, name: "CRITICAL" };
/// The state could not be determined, or the command failed.
pub const UNKNOWN: Exit = Exit { status: 3, name: "UNKNOWN" };
/// Wrong usage (`EX_USAGE`).
pub const USAGE: Exit = Exit { status: 64, name: "UNKNOWN" };

/// The exit status of a verdict.
pub fn of_verdict(verdict: &HostVerdict) -> Exit {
    match verdict.severity {
        Severity::Critical => CRITICAL,
        Severity::Warning => WARNING,
        _ if verdict.is_unknown => UNKNOWN,
        Severity::Ok | Severity::Notice => OK,
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.status.into()
    }
}
