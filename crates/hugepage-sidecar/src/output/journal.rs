//! Messages on standard error, for the journal with priorities (sd-daemon(3)).

use crate::output::escape;
use crate::output::stream::complain;

/// The level of a message.
#[derive(Clone, Copy)]
pub enum LogLevel {
    /// Information.
    Log,
    /// Something is lost, or will be at the next start.
    Warning,
}

/// Writes one message.
pub fn log(level: LogLevel, text: &str) {
    write(level, &[format!("{}:  {text}", name(level))]);
}

/// What a message of `level` begins with.
pub const fn name(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Log => "LOG",
        LogLevel::Warning => "WARNING",
    }
}

/// Writes the lines of one message.
pub fn write(level: LogLevel, lines: &[String]) {
    let priority = if matches!(level, LogLevel::Log) { 6 } else { 4 };
    let to_journal = std::env::var_os("JOURNAL_STREAM").is_some();
    for line in lines.iter().map(|line| escape::line(line)) {
        match to_journal {
            true => complain!("<{priority}>{line}"),
            false => complain!("{} {line}", humantime::format_rfc3339_seconds(std::time::SystemTime::now())),
        }
    }
}
