//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use hugepage_core::read::Root;

use crate::commands::{apply, capture, check, metrics, oracle, report, size, status, watch};
use crate::exit::Exit;

/// Huge pages of a whole host: every PostgreSQL and Oracle instance on it, what they have and what they need.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub struct Cli {
    /// Read another host's files from DIR, as `capture` wrote them, instead of this host's /proc, /sys and /etc.
    #[arg(long, global = true, value_name = "DIR", value_parser = captured_host)]
    root: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// A row for each instance, the pools, and one verdict
    Status(status::StatusOptions),
    /// The right size of every pool, for what runs and for what is down but configured
    Size(size::SizeOptions),
    /// One line and an exit status, for monitoring systems
    Check(check::CheckOptions),
    /// Look again and again: log what is lost and what would be, keep the history, write files
    Watch(watch::WatchOptions),
    /// The same as OpenMetrics text, for node_exporter's textfile collector and the like
    Metrics(metrics::MetricsOptions),
    /// Write all of it as one page for a browser, with pictures and the history
    Report(report::ReportOptions),
    /// Set a pool of huge pages, or leave it as it was if the kernel does not give all of them
    Apply(apply::ApplyOptions),
    /// Copy the files that answers come from, without secrets, to be examined elsewhere with --root
    Capture(capture::CaptureOptions),
    /// Files that an Oracle Database reads, and the SQL for it
    #[command(subcommand)]
    Oracle(oracle::OracleCommand),
}

impl Cli {
    /// Runs the command. An error is one that kept it from its work.
    pub fn run(&self) -> anyhow::Result<Exit> {
        let root = self.root.as_ref().map_or_else(Root::live, Root::at);
        match &self.command {
            Command::Status(options) => status::run(&root, options),
            Command::Size(options) => size::run(&root, options),
            Command::Check(options) => check::run(&root, options),
            Command::Watch(options) => watch::run(&root, options),
            Command::Metrics(options) => metrics::run(&root, options),
            Command::Report(options) => report::run(&root, options),
            Command::Apply(options) => apply::run(&root, options),
            Command::Capture(options) => capture::run(&root, options),
            Command::Oracle(command) => oracle::run(&root, command),
        }
    }
}

/// A directory that a capture may have made.
fn captured_host(text: &str) -> Result<PathBuf, String> {
    let directory = PathBuf::from(text);
    match directory.join("proc").is_dir() {
        true => Ok(directory),
        false => Err("it is no tree of a host's files, for it has no directory proc".to_owned()),
    }
}
