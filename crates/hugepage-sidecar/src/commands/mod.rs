//! One file for each subcommand.

pub mod oracle;

use crate::cli::{Cli, Command};
use crate::exit::Exit;

/// Runs the subcommand; an error is one that kept it from its work.
pub fn run(cli: &Cli) -> anyhow::Result<Exit> {
    match &cli.command {
        Command::Oracle(command) => oracle::run(command),
    }
}
