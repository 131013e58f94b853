//! hugepage-sidecar: the huge pages of a host and of every PostgreSQL and Oracle instance on it.
//!
//! A static binary on the core crate, which reads and assesses; this crate holds the command line and the output. Exit
//! statuses are those of monitoring plugins, see [`exit`].

mod atomic_file;
mod cli;
mod commands;
mod exit;
mod history;
mod oracle;
mod output;
mod report;
mod signals;
mod state;
mod stopped_clusters;

use clap::Parser;
use clap::error::ErrorKind;

fn main() -> std::process::ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // The terminal may be closed; the exit status still says what happened.
            let _ = error.print();
            return match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => exit::OK,
                _ => exit::USAGE,
            }
            .into();
        }
    };
    match cli.run() {
        Ok(status) => status.into(),
        Err(error) => {
            eprintln!("hugepage-sidecar: {error:#}");
            exit::UNKNOWN.into()
        }
    }
}
