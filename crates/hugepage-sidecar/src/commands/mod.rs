//! One file for each subcommand.

pub mod apply;
pub mod capture;

use crate::cli::{Cli, Command};
use crate::exit::Exit;

/// Runs the subcommand; an error is one that kept it from its work.
pub fn run(cli: &Cli) -> anyhow::Result<Exit> {
    match &cli.command {
        Command::Apply(args) => apply::run(args, &cli.root()),
        Command::Capture(args) => capture::run(args, &cli.root()),
    }
}
