//! Output formats: tables for people, JSON and CSV for programs, on standard output; and standard error, where the journal finds
//! priorities (sd-daemon(3)). Nothing is decided here. If their reader goes away, the exit status still says what was found.

pub mod rows;
pub mod table;

pub use hugepage_facts::escape;

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// Prints a line to standard output.
macro_rules! say {
    () => { $crate::output::print(format_args!("\n")) };
    ($($text:tt)*) => { $crate::output::print(format_args!("{}\n", format_args!($($text)*))) };
}

/// Prints lines to standard error, without control characters.
macro_rules! complain {
    ($($text:tt)*) => { $crate::output::print_error(&format!($($text)*)) };
}

pub(crate) use {complain, say};

/// Prints to standard output. A failure is kept for [`has_failed`].
pub fn print(text: Arguments<'_>) {
    if stdout().write_fmt(text).is_err() {
        HAS_FAILED.store(true, Ordering::Relaxed);
    }
}

/// Prints lines to standard error, where a failure cannot be told to anybody.
pub fn print_error(text: &str) {
    let _ = writeln!(io::stderr(), "{}", escape::lines(text));
}

/// Asks on the terminal. The error is that nobody agreed.
pub fn confirm(question: &str) -> anyhow::Result<()> {
    // Standard error writes at once.
    write!(io::stderr(), "{question} [y/N] ")?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    anyhow::ensure!(
        matches!(answer.trim(), "y" | "Y" | "yes"),
        "nothing was changed"
    );
    Ok(())
}

/// Whether output was lost, for example on a full disk. A reader that closed its end of a pipe wanted no more.
pub fn has_failed() -> bool {
    stdout().flush().is_err() || HAS_FAILED.load(Ordering::Relaxed)
}

/// Standard output, without an error for a closed pipe.
pub fn stdout() -> Stdout {
    Stdout(io::stdout())
}

/// Standard output, as [`stdout`] gives it.
#[derive(Debug)]
pub struct Stdout(io::Stdout);

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(bytes.len()),
            result => result,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            result => result,
        }
    }
}

/// The level of a message.
#[derive(Clone, Copy)]
pub enum LogLevel {
    /// Information.
    Log,
    /// Something is lost, or will be at the next start.
    Warning,
}

/// Writes one message: `text` behind the name of its level, and further lines.
pub fn log(level: LogLevel, text: &str, further: &[String]) {
    let (name, priority) = match level {
        LogLevel::Log => ("LOG", 6),
        LogLevel::Warning => ("WARNING", 4),
    };
    let to_journal = std::env::var_os("JOURNAL_STREAM").is_some();
    for line in std::iter::once(&format!("{name}:  {text}"))
        .chain(further)
        .map(|line| escape::line(line))
    {
        if to_journal {
            complain!("<{priority}>{line}")
        } else {
            complain!(
                "{} {line}",
                humantime::format_rfc3339_seconds(std::time::SystemTime::now())
            )
        }
    }
}

/// Prints `document` as JSON.
pub fn json(document: &impl serde::Serialize) -> anyhow::Result<()> {
    say!("{}", json_text(document)?);
    Ok(())
}

/// `document` as JSON that a terminal can show.
pub fn json_text(document: &impl serde::Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string_pretty(document)?;
    Ok(escape::json(&text).into_owned())
}
