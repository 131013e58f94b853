//! One file for each subcommand.

pub mod apply;
pub mod capture;
pub mod check;
pub mod metrics;
pub mod oracle;
pub mod report;
pub mod size;
pub mod status;
pub mod watch;

use crate::cli::{Cli, Command};
use crate::exit::Exit;

/// Runs the subcommand; an error is one that kept it from its work.
pub fn run(cli: &Cli) -> anyhow::Result<Exit> {
    let root = cli.root();
    match &cli.command {
        Command::Status(options) => status::run(&root, options),
        Command::Size(options) => size::run(&root, options),
        Command::Check(options) => check::run(&root, options),
        Command::Watch(options) => watch::run(&root, options),
        Command::Metrics(options) => metrics::run(&root, options),
        Command::Report(args) => report::run(&root, args),
        Command::Apply(args) => apply::run(args, &root),
        Command::Capture(args) => capture::run(args, &root),
        Command::Oracle(command) => oracle::run(command, &root),
    }
}
