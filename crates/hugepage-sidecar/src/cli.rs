//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use hugepage_kernel::Root;

use crate::commands::{apply, benefit, capture, check, lint, metrics, oracle, report, size, status, watch};
use crate::exit::Exit;
use crate::privileges::{self, Needs};

/// Report the huge pages of a host: what every PostgreSQL and Oracle instance has and what it needs.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub struct Cli {
    /// Read the files of another host from DIR, written by `capture`, instead of /proc, /sys and /etc.
    #[arg(long, global = true, value_name = "DIR", value_parser = captured_host)]
    root: Option<PathBuf>,
    /// The command.
    #[command(subcommand)]
    command: Command,
}

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show every instance, the pools, and one verdict
    Status(status::StatusOptions),
    /// Show the recommended size of every pool, for running and for stopped servers
    Size(size::SizeOptions),
    /// Observe every PostgreSQL server for some time: what would huge pages save?
    Benefit(benefit::BenefitOptions),
    /// Print one line and set the exit status, for monitoring systems
    Check(check::CheckOptions),
    /// Monitor continuously: log losses and risks, keep the history, write files
    Watch(watch::WatchOptions),
    /// Print metrics as OpenMetrics text, for node_exporter's textfile collector
    Metrics(metrics::MetricsOptions),
    /// Write an HTML report with charts and the history
    Report(report::ReportOptions),
    /// Set the size of a pool; restore it if the kernel does not provide all pages
    Apply(apply::ApplyOptions),
    /// Check Kubernetes manifests: whether each PostgreSQL gets the huge pages that it needs
    Lint(lint::LintOptions),
    /// Copy the files that were read, without secrets, for analysis elsewhere with --root
    Capture(capture::CaptureOptions),
    /// Write files for Oracle Database, and print the SQL that reads them
    #[command(subcommand)]
    Oracle(oracle::OracleCommand),
}

impl Cli {
    /// What the command does besides looking.
    fn needs(&self) -> Needs {
        match &self.command {
            Command::Status(_) | Command::Check(_) => Needs::default().servers(),
            Command::Benefit(_) => Needs::default(),
            Command::Size(options) => options.needs(),
            Command::Watch(options) => options.needs(),
            Command::Metrics(options) => options.needs(),
            Command::Report(options) => options.needs(),
            Command::Apply(_) if self.root.is_some() => Needs::default(),
            Command::Apply(options) => options.needs(),
            Command::Lint(options) => options.needs(),
            Command::Capture(options) => options.needs(),
            Command::Oracle(command) => command.needs(),
        }
    }

    /// Runs the command. An error means that the command could not do its work.
    pub fn run(&self) -> anyhow::Result<Exit> {
        privileges::confine(&self.needs());
        let root = self.root.as_ref().map_or_else(Root::live, Root::at);
        match &self.command {
            Command::Status(options) => status::run(&root, options),
            Command::Size(options) => size::run(&root, options),
            Command::Benefit(options) => benefit::run(&root, options),
            Command::Check(options) => check::run(&root, options),
            Command::Watch(options) => watch::run(&root, options),
            Command::Metrics(options) => metrics::run(&root, options),
            Command::Report(options) => report::run(&root, options),
            Command::Apply(options) => apply::run(&root, options),
            Command::Lint(options) => lint::run(self.root.is_none(), options),
            Command::Capture(options) => capture::run(&root, options),
            Command::Oracle(command) => oracle::run(&root, command),
        }
    }
}

/// A directory that looks like a captured host.
#[expect(clippy::disallowed_methods, reason = "the directory of --root")]
fn captured_host(text: &str) -> Result<PathBuf, String> {
    let directory = PathBuf::from(text);
    match directory.join("proc").is_dir() {
        true => Ok(directory),
        false => Err("not a captured host: no proc directory".to_owned()),
    }
}
