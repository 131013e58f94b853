//! Exit statuses of monitoring plugins (Monitoring Plugins Development Guidelines), and EX_USAGE of sysexits(3).

use std::process::ExitCode;

use hugepage_assess::assessment::Severity;
use hugepage_host::host_advice::verdict::HostVerdict;

/// An exit status of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit(u8);

/// No problem was found.
pub const OK: Exit = Exit(0);
/// Huge pages are lost, or will be.
pub const WARNING: Exit = Exit(1);
/// A server would fail, or is at risk.
pub const CRITICAL: Exit = Exit(2);
/// The state could not be determined, or the command failed.
pub const UNKNOWN: Exit = Exit(3);
/// Wrong usage (`EX_USAGE`).
pub const USAGE: Exit = Exit(64);

/// The exit status of a verdict.
pub fn of_verdict(verdict: &HostVerdict) -> Exit {
    match verdict.severity {
        Severity::Critical => CRITICAL,
        Severity::Warning => WARNING,
        _ if verdict.is_unknown => UNKNOWN,
        Severity::Ok | Severity::Notice => OK,
    }
}

impl Exit {
    /// The name that monitoring plugins print.
    pub const fn name(self) -> &'static str {
        match self.0 {
            0 => "OK",
            1 => "WARNING",
            2 => "CRITICAL",
            _ => "UNKNOWN",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.0.into()
    }
}
