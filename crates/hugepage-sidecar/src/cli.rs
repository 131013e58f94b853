//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use hugepage_kernel::Root;

use crate::commands::{apply, check, explain, metrics, oracle, report, size, status, watch};
use crate::exit::Exit;
use crate::host_options::{HostOptions, ReadingOptions};
use crate::privileges::Needs;
use crate::supervisor::Kind;

/// Report the huge pages of a host: what every PostgreSQL and Oracle instance has and what it needs.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 80)]
pub struct Cli {
    #[command(flatten)]
    host: HostOptions,
    /// The command.
    #[command(subcommand)]
    command: Command,
}

/// A command, with the options that it shares with others.
#[derive(Debug, Args)]
pub struct With<S: Args, O: Args> {
    #[command(flatten)]
    options: O,
    #[command(flatten)]
    shared: S,
}

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show every instance, the pools, and one verdict
    Status(With<HostOptions, status::StatusOptions>),
    /// Show the recommended size of every pool, for running and for stopped servers
    Size(With<HostOptions, size::SizeOptions>),
    /// Print one line and set the exit status, for monitoring systems
    Check(With<HostOptions, check::CheckOptions>),
    /// Monitor continuously: log losses and risks, keep the history, write files
    Watch(With<HostOptions, watch::WatchOptions>),
    /// Print metrics as OpenMetrics text, for node_exporter's textfile collector
    Metrics(With<HostOptions, metrics::MetricsOptions>),
    /// Write an HTML report with charts and the history
    Report(With<HostOptions, report::ReportOptions>),
    /// Set the size of a pool; restore it if the kernel does not provide all pages
    Apply(With<ReadingOptions, apply::ApplyOptions>),
    /// Explain a cause, a finding or a kernel advisory: what it means, how to see it, what to do
    Explain(explain::ExplainOptions),
    /// Write files for Oracle Database, and print the SQL that reads them
    #[command(subcommand)]
    Oracle(oracle::OracleCommand),
}

impl Cli {
    /// How a command that reads a host is watched over, and the time that it has for that; `None` for the others.
    pub fn supervised(&self) -> Option<(Kind, Duration)> {
        let kind = match &self.command {
            Command::Check(_) => Kind::Check,
            Command::Watch(watch) if watch.options.is_continuous() => Kind::Watch,
            Command::Explain(_) => return None,
            Command::Oracle(command) if command.host().is_none() => return None,
            _ => Kind::Once,
        };
        Some((kind, self.command.reading().or(self.host.reading).timeout()))
    }

    /// The tree that stands for the host; `None` for this host.
    fn root(&self) -> Option<&PathBuf> {
        self.command.host().and_then(|host| host.root.as_ref()).or(self.host.root.as_ref())
    }

    /// The privileges that the command needs.
    pub fn needs(&self) -> Needs {
        match &self.command {
            Command::Status(_) | Command::Check(_) => Needs::default().servers(),
            Command::Explain(_) => Needs::default(),
            Command::Size(size) => size.options.needs(),
            Command::Watch(watch) => watch.options.needs(self.root().is_some()),
            Command::Metrics(metrics) => metrics.options.needs(),
            Command::Report(report) => report.options.needs(),
            Command::Apply(_) if self.root().is_some() => Needs::default(),
            Command::Apply(apply) => apply.options.needs(),
            Command::Oracle(command) => command.needs(),
        }
    }

    /// Runs the command. An error means that the command could not do its work.
    pub fn run(&self) -> anyhow::Result<Exit> {
        let root = &self.root().map_or_else(Root::live, Root::at);
        match &self.command {
            Command::Status(status) => status::run(root, &status.options),
            Command::Size(size) => size::run(root, &size.options),
            Command::Check(check) => check::run(root, &check.options),
            Command::Watch(watch) => watch::run(root, &watch.options),
            Command::Metrics(metrics) => metrics::run(root, &metrics.options),
            Command::Report(report) => report::run(root, &report.options),
            Command::Apply(apply) => apply::run(root, &apply.options),
            Command::Explain(options) => Ok(explain::run(options)),
            Command::Oracle(command) => oracle::run(root, command),
        }
    }
}

impl Command {
    /// The options of the host that it surveys; `None` if it surveys none, or this host alone.
    fn host(&self) -> Option<&HostOptions> {
        match self {
            Self::Status(status) => Some(&status.shared),
            Self::Size(size) => Some(&size.shared),
            Self::Check(check) => Some(&check.shared),
            Self::Watch(watch) => Some(&watch.shared),
            Self::Metrics(metrics) => Some(&metrics.shared),
            Self::Report(report) => Some(&report.shared),
            Self::Oracle(command) => command.host(),
            Self::Apply(_) | Self::Explain(_) => None,
        }
    }

    fn reading(&self) -> ReadingOptions {
        match self {
            Self::Apply(apply) => apply.shared,
            _ => self.host().map(|host| host.reading).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::CommandFactory;

    use super::Cli;

    /// SNAPSHOTS=overwrite writes them anew, as the goldens.
    #[test]
    fn the_manual_pages_are_what_the_help_says() {
        let kept = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/man"));
        let made = tempfile::tempdir().expect("a directory for the pages");
        // Without the version, which would change every page at a release.
        let command = Cli::command().version(None).disable_help_subcommand(true);
        clap_mangen::generate_to(command, made.path()).expect("pages are written");
        let names = |directory: &Path| {
            let entries = directory.read_dir().into_iter().flatten().flatten();
            let mut names = entries.map(|entry| entry.file_name()).collect::<Vec<_>>();
            names.sort();
            names
        };
        if std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite") {
            let _ = std::fs::remove_dir_all(kept);
            std::fs::create_dir(kept).expect("packaging/man is made");
            for name in names(made.path()) {
                std::fs::copy(made.path().join(&name), kept.join(&name)).expect("a page is copied");
            }
        }
        assert_eq!(names(made.path()), names(kept));
        for name in names(kept) {
            let read = |directory: &Path| std::fs::read_to_string(directory.join(&name)).expect("a page is read");
            assert!(
                read(made.path()) == read(kept),
                "packaging/man/{name:?} is old: run this test with SNAPSHOTS=overwrite"
            );
        }
    }
}
