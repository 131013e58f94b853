//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use hugepage_core::read::Root;

use crate::commands::apply::Apply;
use crate::commands::capture::Capture;
use crate::commands::oracle::OracleCommand;
use crate::commands::report::Report;
use crate::commands::{check, metrics, size, status, watch};

/// Huge pages of a whole host: every PostgreSQL and Oracle instance on it, what they have and what they need.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub struct Cli {
    /// Read another host's files from DIR, as `capture` wrote them, instead of this host's /proc, /sys and /etc.
    #[arg(long, global = true, value_name = "DIR", value_parser = tree)]
    root: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// A row for each instance, the pools, and one verdict
    Status(status::Options),
    /// The right size of every pool, for what runs and for what is down but configured
    Size(size::Options),
    /// One line and an exit status, for monitoring systems
    Check(check::Options),
    /// Look again and again: log what is lost and what would be, keep the history, write files
    Watch(watch::Options),
    /// The same as OpenMetrics text, for node_exporter's textfile collector and the like
    Metrics(metrics::Options),
    /// Write all of it as one page for a browser, with pictures and the history
    Report(Report),
    /// Set a pool of huge pages, or leave it as it was if the kernel does not give all of them
    Apply(Apply),
    /// Copy the files that answers come from, without secrets, to be examined elsewhere with --root
    Capture(Capture),
    /// Files that an Oracle Database reads, and the SQL for it
    #[command(subcommand)]
    Oracle(OracleCommand),
}

impl Cli {
    /// The host to look at.
    pub fn root(&self) -> Root {
        self.root.as_ref().map_or_else(Root::live, Root::at)
    }
}

/// A directory that a capture may have made.
fn tree(text: &str) -> Result<PathBuf, String> {
    let directory = PathBuf::from(text);
    match directory.join("proc").is_dir() {
        true => Ok(directory),
        false => Err("it is no tree of a host's files, for it has no directory proc".to_owned()),
    }
}
