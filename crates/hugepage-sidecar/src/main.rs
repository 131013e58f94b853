//! hugepage-sidecar: huge pages of a whole host, every PostgreSQL and Oracle instance on it.
//!
//! One static binary on the core crate, which reads and judges; here is the command line and what it prints. Exit
//! statuses are those of monitoring plugins, see [`exit`].

mod atomic;
mod cli;
mod commands;
mod exit;
mod interrupt;
mod oracle;
mod past;
mod report;
mod show;
mod state;
mod stopped;

use std::io::Write;

use clap::Parser;
use clap::error::ErrorKind;

fn main() -> std::process::ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Nothing can be done about a terminal that is gone.
            let _ = print(&error);
            return match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => exit::OK,
                _ => exit::USAGE,
            }
            .into();
        }
    };
    match commands::run(&cli) {
        Ok(status) => status.into(),
        Err(error) => {
            eprintln!("hugepage-sidecar: {error:#}");
            exit::UNKNOWN.into()
        }
    }
}

/// Prints the help, or what is wrong with the call, without the blanks that clap leaves at line ends.
fn print(error: &clap::Error) -> std::io::Result<()> {
    let mut text = String::new();
    for line in error.render().ansi().to_string().lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    match error.use_stderr() {
        true => anstream::stderr().write_all(text.as_bytes()),
        false => anstream::stdout().write_all(text.as_bytes()),
    }
}
