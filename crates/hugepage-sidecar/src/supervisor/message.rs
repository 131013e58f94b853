//! What is told of a read that does not return.

use std::time::Duration;

use hugepage_assess::advice::events::LogLevel;
use hugepage_kernel::escape;

use crate::output::journal;
use crate::output::stream::{complain, say};

/// How a command tells that there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// By a line on standard error.
    Once,
    /// By the line that a monitoring system reads from standard output.
    Check,
    /// By a message in the log, and it begins again.
    Watch,
}

impl Kind {
    /// Whether the command begins again without what did not answer.
    pub const fn begins_again(self) -> bool {
        matches!(self, Self::Watch)
    }

    /// Tells that there was no answer within `timeout`, and `why`.
    pub fn tell_expired(self, why: &str, timeout: Duration) {
        let text = format!("no answer within {}: {why}", humantime::format_duration(timeout));
        match self {
            Self::Once => complain!("hugepage-sidecar: UNKNOWN: {text}"),
            Self::Check => say!("HUGEPAGES UNKNOWN - {}", escape::line(&text)),
            Self::Watch => journal::log(LogLevel::Warning, &format!("{text}; it is left out until it answers")),
        }
    }

    /// Tells that `left_out` answers again.
    pub fn tell_return(self, left_out: &str) {
        if self.begins_again() {
            journal::log(LogLevel::Log, &format!("{} answers again", name(left_out)));
        }
    }
}

/// What `path` belongs to and does not answer: a process, or a directory.
pub fn left_out(path: &str) -> String {
    let parts: Vec<_> = path.split('/').collect();
    match parts.as_slice() {
        ["", "proc", pid, _, ..] if pid.parse::<i32>().is_ok() => format!("/proc/{pid}"),
        // No directory of the root's alone: too much would be left out.
        ["", _, _, .., _] => parts[..parts.len() - 1].join("/"),
        _ => path.to_owned(),
    }
}

fn name(left_out: &str) -> String {
    match left_out.strip_prefix("/proc/") {
        Some(pid) => format!("process {pid}"),
        None => format!("\"{left_out}\""),
    }
}

/// A read does not return.
pub fn no_answer(path: &str) -> String {
    format!("{} does not answer (reading \"{path}\")", name(&left_out(path)))
}

/// Reads return, but there are too many.
pub fn too_slow(count: u64, path: &str) -> String {
    format!("{count} files were read, \"{path}\" last")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_or_a_directory_is_left_out() {
        for (path, what) in [
            ("/proc/12/cmdline", "/proc/12"),
            ("/proc/12/root/data/PG_VERSION", "/proc/12"),
            ("/proc/meminfo", "/proc/meminfo"),
            ("/proc/sys/vm/nr_hugepages", "/proc/sys/vm"),
            ("/srv/data/conf/x.conf", "/srv/data/conf"),
            ("/etc/oratab", "/etc/oratab"),
            ("/etc", "/etc"),
        ] {
            assert_eq!(left_out(path), what);
        }
        assert_eq!(no_answer("/proc/12/cmdline"), "process 12 does not answer (reading \"/proc/12/cmdline\")");
        assert!(no_answer("/srv/data/x").starts_with("\"/srv/data\" does not answer"));
    }
}
