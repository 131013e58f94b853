//! One file for each subcommand.

use crate::cli::Cli;
use crate::exit::Exit;

/// Runs the subcommand; an error is one that kept it from its work.
pub fn run(cli: &Cli) -> anyhow::Result<Exit> {
    match cli.command {}
}
