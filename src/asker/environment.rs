//! The environment of the program: that of the postmaster, because LOCPATH, TZDIR and the like decide which values are valid.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::server;

/// Variables that the program must not have: the service manager waits for messages of the postmaster.
const NOT_PASSED: [&str; 3] = ["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"];

/// The variables that the postmaster was started with; where the kernel does not show them, those of this process, which
/// inherited them. `LC_ALL` makes error messages English, and the server removes it before it reads any setting (main.c).
pub fn of_a_start() -> Vec<(OsString, OsString)> {
    let mut variables = of_postmaster().unwrap_or_else(|| std::env::vars_os().collect());
    variables.retain(|(name, _)| NOT_PASSED.iter().all(|other| name != other) && name != "LC_ALL");
    variables.push(("LC_ALL".into(), "C".into()));
    variables
}

/// The variables of the postmaster, from /proc/PID/environ; `None` if the file can't be read, or is empty.
#[expect(clippy::disallowed_methods, reason = "the kernel's file")]
fn of_postmaster() -> Option<Vec<(OsString, OsString)>> {
    let process = server::postmaster_in_proc()?;
    let bytes = fs::read(format!("/proc/{process}/environ")).ok()?;
    let variables: Vec<_> = bytes.split(|&byte| byte == 0).filter_map(variable).collect();
    (!variables.is_empty()).then_some(variables)
}

fn variable(text: &[u8]) -> Option<(OsString, OsString)> {
    let equals = text.iter().position(|&byte| byte == b'=').filter(|&at| at > 0)?;
    Some((OsStr::from_bytes(&text[..equals]).to_owned(), OsString::from_vec(text[equals + 1..].to_vec())))
}
