//! Exit statuses, as monitoring plugins have them (Monitoring Plugins Development Guidelines), and sysexits(3)'s for a
//! wrong call.

use std::process::ExitCode;

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

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.0.into()
    }
}
