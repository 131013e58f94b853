//! `watch`: surveys the host at an interval, logs changes as the worker of the PostgreSQL extension does, keeps the
//! history of each instance, and writes files for other programs.
//!
//! ```text
//! $ hugepage-sidecar watch --once
//! <6>LOG:  orcl: the SGA landed in 4100 huge pages of 2 MB
//! <6>DETAIL:  The SGA in huge pages: 8200 MB of 8200 MB (100%).
//! <6>DETAIL:  Huge pages of 2 MB: 4100 needed, 0 missing, 0 available; the pool has 4100, of them 0 free, 0 reserved, 0 surplus.
//! <6>DETAIL:  As configured: use_large_pages = TRUE.
//! ```

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use hugepage_assess::advice::events::LogMessage;
use hugepage_facts::Snapshot;
use hugepage_host::{HostVerdict, Instance, Survey, decide, read, readers, recall};
use hugepage_kernel::Root;
use hugepage_sizing::Sizing;

use crate::commands::metrics;
use crate::commands::survey::{AccountOptions, duration, within};
use crate::exit::Exit;
use crate::history::{HostHistory, remembered};
use crate::oracle::{WriterOptions, survey_snapshot};
use crate::output::rows::HostOutput;
use crate::output::{self, LogLevel, complain, json_text};
use crate::privileges::{self, Needs};
use crate::signals::SignalTimer;
use crate::state;

/// The number of errors that are logged: messages that differ each time would fill the log.
const MAX_REPORTED_ERRORS: usize = 50;

/// Options of `watch`.
#[derive(Debug, Args)]
pub struct WatchOptions {
    /// Keep this much of the host's memory for 4 kB pages, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = within::<u32, 0, 90>)]
    reserve_percent: u32,
    /// Time between two surveys
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    interval: Duration,
    /// Directory for the history of each instance; with --root below that directory, and nothing is kept without this option
    /// [default: /var/lib/hugepage-sidecar]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    #[command(flatten)]
    accounts: AccountOptions,
    /// Records to keep per instance; 0 keeps none
    #[arg(long, value_name = "RECORDS", default_value_t = 1000, value_parser = within::<usize, 0, 1_000_000>)]
    history_size: usize,
    /// Write the output of `status --format json` to FILE after each survey
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the output of `metrics` to FILE after each survey, for node_exporter's textfile collector
    #[arg(long, value_name = "FILE")]
    textfile: Option<PathBuf>,
    /// Write the files for Oracle Database to DIR after each survey, see docs/oracle.md; may be repeated
    #[arg(long, value_name = "DIR")]
    oracle_dir: Vec<PathBuf>,
    #[command(flatten)]
    access: WriterOptions,
    /// Survey once and exit with the status of `status`
    #[arg(long)]
    once: bool,
}

impl WatchOptions {
    fn state_dir(&self) -> &Path {
        self.state_dir
            .as_deref()
            .unwrap_or(Path::new(state::DIRECTORY))
    }

    /// The records that are kept per instance. A tree is left as it is, unless a directory in it is named.
    const fn records(&self, of_tree: bool) -> usize {
        if of_tree && self.state_dir.is_none() {
            0
        } else {
            self.history_size
        }
    }

    /// The privileges that the command needs.
    pub fn needs(&self, of_tree: bool) -> Needs {
        let files = [&self.json, &self.textfile].into_iter().flatten();
        let needs = files.fold(Needs::default(), |needs, file| needs.file(file));
        let needs = self.oracle_dir.iter().fold(needs, |needs, directory| {
            needs.directory(directory).owners()
        });
        if self.records(of_tree) > 0 {
            needs.new_directory(self.state_dir())
        } else {
            needs
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this program's directory of histories"
)]
pub fn run(
    root: &Root,
    options: &WatchOptions,
    has_signal: &Arc<AtomicBool>,
) -> anyhow::Result<Exit> {
    if root.is_tree() && !options.once {
        complain!("hugepage-sidecar: watch observes this host: with --root, add --once");
        return Ok(Exit::Usage);
    }
    options.accounts.check(root)?;
    let records = options.records(root.is_tree());
    let directory = options.state_dir();
    if records > 0 {
        std::fs::create_dir_all(directory).with_context(|| {
            format!(
                "could not create the directory {} of --state-dir",
                directory.display()
            )
        })?;
    }
    if let Some(note) = privileges::note() {
        output::log(LogLevel::Log, note, &[]);
    }
    let mut timer = SignalTimer::new(has_signal).context("could not catch signals")?;
    let mut history = HostHistory::open(root, directory);
    let mut reported = BTreeSet::new();
    loop {
        let begun = Instant::now();
        readers::begin_again();
        let snapshot = read(root, &options.accounts.service_account, None);
        if has_signal.load(Ordering::Relaxed) {
            return Ok(Exit::Ok);
        }
        let of_boot = if root.is_live() && records > 0 {
            history.remember_boot(&snapshot.host.next_boot.look)
        } else {
            Ok(())
        };
        let survey = recorded(root, snapshot, options, &mut history, &mut reported);
        let sizings = survey.sizings();
        let mut errors = write_files(root, &survey, &sizings, options, &history, begun);
        errors.extend(of_boot.err());
        if root.is_live() && records > 0 {
            let of_running = |one: &Instance| state::history_file(directory, &one.id.key());
            let running = survey.instances.iter().map(of_running).collect();
            // Whose files were not read may run.
            if survey.host.unread.is_empty() {
                for error in remembered::mark_gone(root, directory, &running) {
                    output::log(LogLevel::Warning, &error, &[]);
                }
            }
            state::prune(directory, &running);
        }
        // At every survey: a reader of an old file has no other sign that it is old.
        for error in &errors {
            output::log(LogLevel::Warning, &format!("{error:#}"), &[]);
        }
        if options.once {
            let of_survey = || Exit::of_verdict(&HostVerdict::of_survey(&survey, &sizings));
            return Ok(if errors.is_empty() {
                of_survey()
            } else {
                Exit::Unknown
            });
        }
        // The end of a reader wakes it, too.
        while let Some(left) = options
            .interval
            .checked_sub(begun.elapsed())
            .filter(|left| !left.is_zero())
        {
            if timer.wait(left).context("could not wait")? {
                return Ok(Exit::Ok);
            }
        }
    }
}

/// Logs and records what has changed, and assesses the host with what was recorded.
fn recorded(
    root: &Root,
    mut snapshot: Snapshot,
    options: &WatchOptions,
    history: &mut HostHistory,
    reported: &mut BTreeSet<String>,
) -> Survey {
    // What is recorded is what is seen now, whatever was recorded before.
    snapshot.host.next_boot.recall(history.boots());
    let seen = decide(&snapshot, options.reserve_percent);
    for events in history.record(&seen, options.records(root.is_tree())) {
        for message in &events.messages {
            log_message(&events.instance, message);
        }
        // Each is logged once, not at every survey.
        let new = events
            .error
            .filter(|_| reported.len() < MAX_REPORTED_ERRORS);
        if let Some(text) = new.filter(|text| reported.insert(text.clone())) {
            output::log(LogLevel::Warning, &text, &[]);
        }
    }
    recall(&mut snapshot, &|server, notes| {
        history.recall(server, notes)
    });
    decide(&snapshot, options.reserve_percent)
}

/// Writes all files of one survey and returns the errors. An error of one file does not stop the others.
fn write_files(
    root: &Root,
    survey: &Survey,
    sizings: &[Sizing],
    options: &WatchOptions,
    history: &HostHistory,
    begun: Instant,
) -> Vec<anyhow::Error> {
    let next = (!options.once).then_some(options.interval);
    let snapshot = || survey_snapshot::from_survey(survey, sizings, next);
    let snapshot = (!options.oracle_dir.is_empty()).then(snapshot);
    let json = |path| {
        (
            path,
            json_text(&HostOutput::new(survey, sizings)).map(|text| text + "\n"),
        )
    };
    let metrics = |path| (path, Ok(metrics::of_survey(root, survey, history, begun)));
    let files = [
        options.json.as_ref().map(json),
        options.textfile.as_ref().map(metrics),
    ];
    let written = files.into_iter().flatten().map(|(path, text)| {
        privileges::replace_file(path, text?.as_bytes())
            .with_context(|| format!("could not write {}", path.display()))
    });
    let oracle = snapshot.iter().flat_map(|snapshot| {
        options
            .oracle_dir
            .iter()
            .map(|directory| snapshot.write(directory, &options.access).map(|_| ()))
    });
    written.chain(oracle).filter_map(Result::err).collect()
}

fn log_message(instance: &str, message: &LogMessage) {
    let level = if message.is_bad {
        LogLevel::Warning
    } else {
        LogLevel::Log
    };
    let mut further = Vec::new();
    for (name, text) in [("DETAIL", &message.detail), ("HINT", &message.hint)] {
        let lines = text.iter().flat_map(|text| text.lines());
        further.extend(lines.map(|line| format!("{name}:  {line}")));
    }
    output::log(level, &format!("{instance}: {}", message.message), &further);
}
