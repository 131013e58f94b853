//! The command line.

use std::sync::Arc;

use clap::{Parser, Subcommand};
use hugepage_host::readers;
use hugepage_kernel::Root;
use signal_hook::consts::SIGCHLD;
use signal_hook::flag;

use crate::commands::apply::pool;
use crate::commands::survey::{self, HostOptions};
use crate::commands::{
    apply, check, collapse, completions, explain, metrics, oracle, report, reserve, size, status,
    watch,
};
use crate::exit::Exit;
use crate::privileges::Needs;

/// Calls of this program, for the end of a help.
macro_rules! examples {
    ($($call:literal),+) => { concat!("Examples:", $("\n  hugepage-sidecar ", $call),+) };
}

/// Report the huge pages of a host: what every PostgreSQL and Oracle instance has and what it needs.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 80)]
#[command(after_help = examples!("status", "explain pool_empty", "apply --recommended --persist"))]
pub struct Cli {
    #[command(flatten)]
    host: HostOptions,
    /// The command.
    #[command(subcommand)]
    command: Command,
}

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show every instance, the pools, and one verdict
    #[command(after_help = examples!("status", "status --format json", "--root /mnt/host status"))]
    Status(status::StatusOptions),
    /// Show the recommended size of every pool, for running and for stopped servers
    #[command(after_help = examples!("size", "size --sessions 500", "size --shared-buffers 8GB --major 17"))]
    Size(size::SizeOptions),
    /// Print one line and set the exit status, for monitoring systems
    #[command(after_help = examples!("check", "check --instance /var/lib/postgresql/17/main"))]
    Check(check::CheckOptions),
    /// Monitor continuously: log losses and risks, keep the history, write files
    #[command(after_help = examples!("watch --interval 5min", "watch --textfile /var/lib/prometheus/node-exporter/hugepages.prom"))]
    Watch(watch::WatchOptions),
    /// Print metrics as OpenMetrics text, for node_exporter's textfile collector
    #[command(after_help = examples!("metrics", "metrics --textfile /var/lib/prometheus/node-exporter/hugepages.prom"))]
    Metrics(metrics::MetricsOptions),
    /// Write an HTML report with page tables and the history
    #[command(after_help = examples!("report --html huge-pages.html"))]
    Report(report::ReportOptions),
    /// Set the size of a pool; restore it if the kernel does not provide all pages
    #[command(after_help = examples!("apply --recommended --dry-run", "apply --recommended --persist", "apply --pages 4300 --yes"))]
    Apply(apply::ApplyOptions),
    /// Give a running PostgreSQL server transparent huge pages, without a restart
    #[command(after_help = examples!("collapse --instance /var/lib/postgresql/17/main --dry-run"))]
    Collapse(collapse::CollapseOptions),
    /// Reserve the pages of the servers that a boot will start, early at that boot, see hugepage-reserve.service
    #[command(after_help = examples!("reserve"))]
    Reserve(reserve::ReserveOptions),
    /// Print the facts read from this host as JSON, for --snapshot of other commands
    #[command(after_help = examples!("capture --anonymous >host.json", "status --snapshot host.json"))]
    Capture(survey::CaptureOptions),
    /// Explain a cause, a finding or a kernel advisory: what it means, how to see it, what to do
    #[command(after_help = examples!("explain", "explain pool_empty"))]
    Explain {
        /// A cause, a finding, a kernel advisory or an alert, such as `pool_empty`; without it all names are listed
        name: Option<String>,
    },
    /// Print what completes commands in a shell
    #[command(after_help = examples!("completions bash >/etc/bash_completion.d/hugepage-sidecar"))]
    Completions {
        /// The shell
        #[arg(value_parser = ["bash", "fish", "zsh"])]
        shell: String,
    },
    /// Write files for Oracle Database, and print the SQL that reads them
    #[command(subcommand)]
    #[command(after_help = examples!("oracle install-sql | sqlplus / as sysdba"))]
    Oracle(oracle::OracleCommand),
}

impl Cli {
    /// The privileges that the command needs.
    pub fn needs(&self) -> Needs {
        match &self.command {
            Command::Size(size) => size.needs(),
            Command::Watch(watch) => watch.needs(self.host.root.is_some()),
            Command::Metrics(metrics) => metrics.needs(),
            Command::Report(report) => report.needs(),
            Command::Apply(apply) if self.host.root.is_none() => apply.needs(),
            Command::Collapse(_) => Needs::default().nice(),
            Command::Reserve(_) if self.host.root.is_none() => pool::needs(),
            Command::Oracle(command) => command.needs(),
            _ => Needs::default(),
        }
    }

    /// Runs the command. An error means that the command could not do its work.
    pub fn run(&self) -> anyhow::Result<Exit> {
        let root = &self.host.root.as_ref().map_or_else(Root::live, Root::at);
        // A caller may ignore the end of its children, and then nobody could wait for readers.
        flag::register(SIGCHLD, Arc::default())?;
        let has_signal = Arc::default();
        readers::begin(self.host.timeout, Arc::clone(&has_signal));
        match &self.command {
            Command::Status(status) => status::run(root, status),
            Command::Size(size) => size::run(root, size),
            Command::Check(check) => check::run(root, check),
            Command::Watch(watch) => watch::run(root, watch, &has_signal),
            Command::Metrics(metrics) => metrics::run(root, metrics),
            Command::Report(report) => report::run(root, report),
            Command::Apply(apply) => apply::run(root, apply),
            Command::Collapse(collapse) => collapse::run(root, collapse),
            Command::Reserve(reserve) => reserve::run(root, reserve),
            Command::Capture(capture) => survey::capture(root, capture),
            Command::Explain { name } => Ok(explain::run(name.as_deref())),
            Command::Completions { shell } => Ok(completions::run(shell)),
            Command::Oracle(command) => oracle::run(root, command),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::time::SystemTime;

    use clap::{Command, CommandFactory};
    use clap_complete::Shell;

    use super::Cli;

    const OF_VERDICT: &str = "\
.TP\n0\nNo problem was found.\n.TP\n1\nHuge pages are lost, or will be.\n.TP\n2\nA server would fail, or is at risk.\n\
.TP\n3\nThe state could not be determined, or the command failed.\n";
    const OF_SIZE: &str = "\
.TP\n0\nThe need of each server that is counted is known.\n.TP\n1\nA need does not fit into the memory of the host.\n.TP\n3\nA need is unknown, or the command failed.\n";
    const OF_APPLY: &str = "\
.TP\n0\nThe pool is set.\n.TP\n1\nThe kernel did not provide all pages, and the pool is as before.\n\
.TP\n2\nThe pool could not be restored.\n.TP\n3\nThe command failed.\n";
    const OF_RESERVE: &str = "\
.TP\n0\nThe pools have what the counted servers need.\n.TP\n1\nA pool has less.\n\
.TP\n3\nA need is unknown, or the command failed.\n";
    const OF_COLLAPSE: &str = "\
.TP\n0\nEvery range was asked for.\n.TP\n1\nIt ended before, or no range is a huge page; what is done stays.\n\
.TP\n3\nNothing was touched.\n";
    const OF_SUCCESS: &str = ".TP\n0\nDone.\n.TP\n3\nThe command failed.\n";
    const FILES: &str = "\
.TP\n/var/lib/hugepage\\-sidecar\nThe history of each instance, which `watch` writes.\n\
.TP\n/etc/hugepage\\-sidecar/service\\-accounts\nUsers whose instances count, one a line.\n\
.TP\n/etc/hugepage\\-sidecar/postgresql\\-data\nData directories of servers that count, one a line.\n\
.TP\n/etc/sysctl.d/, /etc/tmpfiles.d/\nWhere `apply \\-\\-persist` writes what sets the pools at boot.\n";

    /// The day that the title of a page has: when its text changed last.
    fn day_of(page: &str) -> Option<String> {
        let title = page.lines().find(|line| line.starts_with(".TH "))?;
        Some(title.split('"').nth(1)?.to_owned())
    }

    /// The sections that the help has not, or says otherwise, below a title with the day.
    fn with_sections(page: &str, name: &str, command: &Command, day: &str) -> String {
        let (macros, page) = page.split_once(".TH ").unwrap();
        let (_, page) = page.split_once('\n').unwrap();
        let page = &format!(
            "{macros}.TH {name} 1 \"{day}\" \"pg_hugepages\" \"Huge pages of a host\"\n{page}"
        );
        let (start, rest) = page.split_once(".SH EXTRA\n").unwrap_or((page, ""));
        let mut page = format!(
            "{start}{}",
            rest.find(".SH ").map_or("", |next| &rest[next..])
        );
        if let Some(help) = command.get_after_help() {
            let help = help.to_string().replace('-', "\\-");
            page += &format!(
                ".SH EXAMPLES\n.nf\n{}\n.fi\n",
                help.trim_start_matches("Examples:\n")
            );
        }
        let statuses = match name.trim_start_matches("hugepage-sidecar") {
            "" | "-status" | "-check" | "-watch" => OF_VERDICT,
            "-size" => OF_SIZE,
            "-apply" => OF_APPLY,
            "-collapse" => OF_COLLAPSE,
            "-reserve" => OF_RESERVE,
            _ => OF_SUCCESS,
        };
        page +=
            &format!(".SH \"EXIT STATUS\"\n{statuses}.TP\n64\nWrong usage.\n.SH FILES\n{FILES}");
        let others = [
            "", "-status", "-check", "-size", "-watch", "-apply", "-explain",
        ]
        .map(|of| format!("hugepage-sidecar{of}"));
        let others = others
            .iter()
            .filter(|other| *other != name)
            .map(|other| format!(".BR {other} (1),\n"));
        page + &format!(
            ".SH \"SEE ALSO\"\n{}.BR sysctl.d (5)\n",
            others.collect::<String>()
        )
    }

    /// All files that packages install: the manual pages, and what completes commands in shells. A page that is as in `kept` has
    /// that one's day, another has today's.
    fn make(directory: &Path, kept: &Path) {
        let today = &humantime::format_rfc3339(SystemTime::now()).to_string()[..10];
        // Without the version, which would change every page at a release.
        let command = Cli::command().version(None).disable_help_subcommand(true);
        fs::create_dir_all(directory.join("man")).unwrap();
        fs::create_dir_all(directory.join("completions")).unwrap();
        clap_mangen::generate_to(command.clone(), directory.join("man")).unwrap();
        let mut commands = vec![("hugepage-sidecar".to_owned(), command)];
        while let Some((name, command)) = commands.pop() {
            let page = directory.join(format!("man/{name}.1"));
            let made = fs::read_to_string(&page).unwrap();
            let before = fs::read_to_string(kept.join(format!("man/{name}.1"))).unwrap_or_default();
            let on = |day: &str| with_sections(&made, &name, &command, day);
            let same = day_of(&before).map(|day| on(&day));
            let text = same.filter(|same| *same == before);
            fs::write(&page, text.unwrap_or_else(|| on(today))).unwrap();
            commands.extend(
                command
                    .get_subcommands()
                    .map(|sub| (format!("{name}-{}", sub.get_name()), sub.clone())),
            );
        }
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            clap_complete::generate_to(
                shell,
                &mut Cli::command(),
                "hugepage-sidecar",
                directory.join("completions"),
            )
            .unwrap();
        }
        let bash = directory.join("completions/hugepage-sidecar.bash");
        // Bash would look for another name than the one that it made: clap's issue 6421.
        let script = fs::read_to_string(&bash).unwrap();
        fs::write(
            &bash,
            script.replace("hugepage__subcmd__sidecar", "hugepage__sidecar"),
        )
        .unwrap();
    }

    fn files(directory: &Path) -> Vec<PathBuf> {
        let of = |kind| {
            directory
                .join(kind)
                .read_dir()
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path())
        };
        let mut files: Vec<_> = of("man").chain(of("completions")).collect();
        files.sort();
        files
            .iter()
            .map(|file| file.strip_prefix(directory).unwrap().to_owned())
            .collect()
    }

    /// SNAPSHOTS=overwrite writes them anew, as the goldens.
    #[test]
    fn manual_pages_and_completions_are_what_the_help_says() {
        let kept = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging"));
        let made = tempfile::tempdir().unwrap();
        make(made.path(), kept);
        if std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite") {
            files(kept)
                .iter()
                .for_each(|file| fs::remove_file(kept.join(file)).unwrap());
            for file in files(made.path()) {
                fs::copy(made.path().join(&file), kept.join(&file)).unwrap();
            }
        }
        assert_eq!(files(made.path()), files(kept));
        for file in files(kept) {
            let read = |directory: &Path| fs::read_to_string(directory.join(&file)).unwrap();
            assert!(
                read(made.path()) == read(kept),
                "packaging/{} is old: run this test with SNAPSHOTS=overwrite",
                file.display()
            );
        }
    }
}
