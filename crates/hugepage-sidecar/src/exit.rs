//! Exit statuses, as monitoring plugins have them (Monitoring Plugins Development Guidelines), and sysexits(3)'s for a
//! wrong call.

use std::process::ExitCode;

use hugepage_core::assess::Severity;
use hugepage_core::collect::instances::{Instance, Survey};

/// An exit status of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit(u8);

/// All is well.
pub const OK: Exit = Exit(0);
/// Something is lost, or will be.
pub const WARNING: Exit = Exit(1);
/// A server is in danger.
pub const CRITICAL: Exit = Exit(2);
/// It could not be found out, or what was asked for could not be done.
pub const UNKNOWN: Exit = Exit(3);
/// A wrong call (`EX_USAGE`).
pub const USAGE: Exit = Exit(64);

/// Of what was seen: the gravest verdict; unknown if that is the worst and something could not be seen.
pub fn of(survey: &Survey) -> Exit {
    let gravest = survey.instances.iter().map(|instance| instance.status.verdict().0).max();
    let hidden = |instance: &Instance| instance.landed().is_hidden();
    match gravest {
        Some(Severity::Critical) => CRITICAL,
        Some(Severity::Warning) => WARNING,
        // Without /proc nothing is seen at all.
        _ if survey.meminfo.is_none() || survey.processes_are_hidden || survey.instances.iter().any(hidden) => UNKNOWN,
        _ => OK,
    }
}

impl Exit {
    /// As monitoring plugins say it.
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
