//! hugepage-sidecar: huge pages of a whole host, every PostgreSQL and Oracle instance on it.
//!
//! One static binary on the core crate, which reads and judges; here is the command line and what it prints. Exit
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
            // Nothing can be done about a terminal that is gone.
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
