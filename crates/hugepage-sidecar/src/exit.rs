//! Exit statuses of monitoring plugins (Monitoring Plugins Development Guidelines), and EX_USAGE of sysexits(3).

use std::process::ExitCode;

use hugepage_assess::assessment::Severity;
use hugepage_host::HostVerdict;

/// An exit status of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// No problem was found.
    Ok = 0,
    /// Huge pages are lost, or will be.
    Warning = 1,
    /// A server would fail, or is at risk.
    Critical = 2,
    /// The state could not be determined, or the command failed.
    Unknown = 3,
    /// Wrong usage (`EX_USAGE`).
    Usage = 64,
}

impl Exit {
    /// The exit status of a verdict.
    pub fn of_verdict(verdict: &HostVerdict) -> Self {
        match verdict.severity {
            Severity::Critical => Self::Critical,
            Severity::Warning => Self::Warning,
            _ if verdict.is_unknown => Self::Unknown,
            Severity::Ok | Severity::Notice => Self::Ok,
        }
    }

    /// The name that monitoring plugins print.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
            Self::Unknown | Self::Usage => "UNKNOWN",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        (exit as u8).into()
    }
}
