//! hugepage-sidecar: the huge pages of a host and of every PostgreSQL and Oracle instance on it.
//!
//! A static binary: it holds the command line and the output. Its exit statuses are those of monitoring plugins, see [`exit`].

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod cli;
mod commands;
mod exit;
mod history;
mod oracle;
mod output;
mod privileges;
#[expect(
    clippy::disallowed_methods,
    reason = "who owns a program, and what it would read"
)]
mod server_program;
mod signals;
mod state;

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::cli::Cli;
use crate::exit::Exit;
use crate::output::{complain, escape};
use clap::Parser;

fn main() -> std::process::ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // The terminal may be closed; the exit status still says what happened.
            let _ = print(&error);
            return if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Ok
            }
            .into();
        }
    };
    let needs = privileges::keep_those_of_caller()
        .and_then(|()| privileges::check_limits())
        .and_then(|()| cli.needs().checked());
    let run = |needs| {
        privileges::confine(&needs);
        let done = catch_unwind(AssertUnwindSafe(|| cli.run()));
        done.unwrap_or_else(|_| Err(anyhow::Error::msg("it came upon what it can't handle")))
    };
    exit_of(needs.map_err(anyhow::Error::msg).and_then(run)).into()
}

/// The exit status of a command, after its error was told.
fn exit_of(done: anyhow::Result<Exit>) -> Exit {
    match done {
        Ok(_) if output::has_failed() => {
            complain!("hugepage-sidecar: could not write all output");
            Exit::Unknown
        }
        Ok(status) => status,
        Err(error) => {
            complain!("hugepage-sidecar: {}", escape::line(&format!("{error:#}")));
            Exit::Unknown
        }
    }
}

/// Prints the help, or what is wrong with the call, without the blanks that clap leaves at line ends.
fn print(error: &clap::Error) -> std::io::Result<()> {
    let text = error.render().ansi().to_string();
    let text: String = text
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect();
    if error.use_stderr() {
        anstream::stderr().write_all(text.as_bytes())
    } else {
        anstream::stdout().write_all(text.as_bytes())
    }
}
