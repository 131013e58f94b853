//! One file for each subcommand.

pub mod apply;
pub mod capture;
pub mod report;
pub mod status;

use crate::cli::{Cli, Command};
use crate::exit::Exit;

/// Runs the subcommand; an error is one that kept it from its work.
pub fn run(cli: &Cli) -> anyhow::Result<Exit> {
    let root = cli.root();
    match &cli.command {
        Command::Status(options) => status::run(&root, *options),
        Command::Report(args) => report::run(&root, args),
        Command::Apply(args) => apply::run(args, &root),
        Command::Capture(args) => capture::run(args, &root),
    }
}
