//! `watch`: surveys the host at an interval, logs changes as the worker of the PostgreSQL extension does, keeps the
//! history of each instance, and writes files for other programs.

use std::collections::BTreeSet;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use hugepage_assess::advice::events::LogMessage;
use hugepage_host::host_advice::verdict::HostVerdict;
use hugepage_host::{Instance, Snapshot, Survey, readers};
use hugepage_kernel::Root;
use hugepage_sizing::Sizing;

use crate::commands::metrics;
use crate::commands::survey::AccountOptions;
use crate::exit::{self, Exit};
use crate::history::HostHistory;
use crate::host_options::{duration, within};
use crate::oracle::files::WriterOptions;
use crate::oracle::{self, survey_snapshot};
use crate::output::host_rows::HostOutput;
use crate::output::journal::{self, LogLevel};
use crate::output::json_text;
use crate::output::stream::complain;
use crate::privileges::{self, Needs};
use crate::signals::SignalTimer;
use crate::{atomic_file, state};

/// The number of errors that are logged: messages that differ each time would fill the log.
const MAX_REPORTED_ERRORS: usize = 50;

/// History files that are kept besides those of running instances: those written to last, and none that nothing was written to for this time.
const MAX_HISTORIES: usize = 1000;
const MAX_HISTORY_AGE: Duration = Duration::from_secs(400 * 24 * 60 * 60);

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
        self.state_dir.as_deref().unwrap_or(Path::new(state::DIRECTORY))
    }

    /// The records that are kept per instance. A tree is left as it is, unless a directory in it is named.
    const fn records(&self, of_tree: bool) -> usize {
        if of_tree && self.state_dir.is_none() { 0 } else { self.history_size }
    }

    /// The privileges that the command needs.
    pub fn needs(&self, of_tree: bool) -> Needs {
        let files = [&self.json, &self.textfile].into_iter().flatten();
        let needs = files.fold(Needs::default(), |needs, file| needs.file(file));
        let needs = self.oracle_dir.iter().fold(needs, |needs, directory| needs.directory(directory).owners());
        if self.records(of_tree) > 0 { needs.new_directory(self.state_dir()) } else { needs }
    }
}

#[expect(clippy::disallowed_methods, reason = "this program's directory of histories")]
pub fn run(root: &Root, options: &WatchOptions, has_signal: &Arc<AtomicBool>) -> anyhow::Result<Exit> {
    if root.is_tree() && !options.once {
        complain!("hugepage-sidecar: watch observes this host: with --root, add --once");
        return Ok(exit::USAGE);
    }
    options.accounts.check(root)?;
    let (records, directory) = (options.records(root.is_tree()), options.state_dir());
    if records > 0 {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("could not create the directory {} of --state-dir", directory.display()))?;
    }
    privileges::note().into_iter().for_each(|note| journal::log(LogLevel::Log, note));
    let mut timer = SignalTimer::new(has_signal).context("could not catch signals")?;
    let mut history = HostHistory::open(root, directory);
    let mut reported = BTreeSet::new();
    loop {
        let begun = Instant::now();
        readers::begin_again();
        let snapshot = Snapshot::read(root, &options.accounts.service_account, None);
        if has_signal.load(Ordering::Relaxed) {
            return Ok(exit::OK);
        }
        let survey = recorded(root, snapshot, options, &mut history, &mut reported);
        if root.is_live() && records > 0 {
            let of_running = |one: &Instance| state::history_file(directory, &one.id);
            prune(directory, &survey.instances.iter().map(of_running).collect());
        }
        let sizings = survey.sizings();
        let errors = write_files(root, &survey, &sizings, options, &history, begun);
        let has_written = errors.is_empty();
        for error in errors {
            // At every survey: a reader of an old file has no other sign that it is old.
            journal::log(LogLevel::Warning, &format!("{error:#}"));
        }
        if options.once {
            return Ok(if has_written {
                exit::of_verdict(&HostVerdict::of_survey(&survey, &sizings))
            } else {
                exit::UNKNOWN
            });
        }
        // The end of a reader wakes it, too.
        while let Some(left) = options.interval.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
            if timer.wait(left).context("could not wait")? {
                return Ok(exit::OK);
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
    let seen = snapshot.assess(options.reserve_percent);
    for events in history.record(&seen, options.records(root.is_tree())) {
        events.messages.iter().for_each(|message| log_message(&events.instance, message));
        // Each is logged once, not at every survey.
        let new = events.error.filter(|_| reported.len() < MAX_REPORTED_ERRORS);
        if let Some(text) = new.filter(|text| reported.insert(text.clone())) {
            journal::log(LogLevel::Warning, &text);
        }
    }
    snapshot.recall(&|server, current, notes| history.recall(server, current, notes));
    snapshot.assess(options.reserve_percent)
}

/// Removes the history files of instances that are long gone. An instance can be created and dropped any number of times.
#[expect(clippy::disallowed_methods, reason = "this program's directory of histories")]
fn prune(directory: &Path, of_running: &BTreeSet<PathBuf>) {
    let is_of_gone = |entry: &DirEntry| {
        entry.file_name().to_str().is_some_and(state::is_history_file)
            && entry.file_type().is_ok_and(|kind| kind.is_file())
            && !of_running.contains(&entry.path())
    };
    for (index, (modified, path)) in state::newest_first(directory, is_of_gone).iter().enumerate() {
        if index >= MAX_HISTORIES || modified.elapsed().is_ok_and(|age| age > MAX_HISTORY_AGE) {
            // One that remains is tried again after the next survey.
            let _ = privileges::write(|| std::fs::remove_file(path));
        }
    }
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
    // What its logs tell is read before anything is written.
    let next = (!options.once).then_some(options.interval);
    let snapshot = || survey_snapshot::from_survey(root, survey, sizings, next, &mut history.logs());
    let snapshot = (!options.oracle_dir.is_empty()).then(snapshot);
    let of_survey = |path| (path, metrics::of_survey(root, survey, history, begun));
    let textfile = options.textfile.as_deref().map(of_survey);
    let written = |path: &Path, content: &[u8]| {
        atomic_file::write(path, content, 0o644).with_context(|| format!("could not write {}", path.display()))
    };
    let json = options.json.as_deref().map(|path| {
        let text = json_text(&HostOutput::new(survey, sizings))? + "\n";
        written(path, text.as_bytes())
    });
    let metrics = textfile.map(|(path, text)| written(path, text.as_bytes()));
    let oracle = snapshot.iter().flat_map(|snapshot| {
        options.oracle_dir.iter().map(|directory| oracle::write(directory, snapshot, &options.access).map(|_| ()))
    });
    [json, metrics].into_iter().flatten().chain(oracle).filter_map(Result::err).collect()
}

fn log_message(instance: &str, message: &LogMessage) {
    let level = if message.is_bad { LogLevel::Warning } else { LogLevel::Log };
    let parts = [("DETAIL", &message.detail), ("HINT", &message.hint)];
    let mut lines = vec![format!("{}:  {instance}: {}", journal::name(level), message.message)];
    for (name, text) in parts {
        lines.extend(text.iter().flat_map(|text| text.lines()).map(|line| format!("{name}:  {instance}: {line}")));
    }
    journal::write(level, &lines);
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn keep_a_bounded_number_of_histories() {
        let directory = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let create = |name: &str, age: u64| {
            let file = File::create(directory.path().join(name)).unwrap();
            file.set_modified(now - Duration::from_secs(age)).unwrap();
        };
        let day = 24 * 60 * 60;
        create("oracle-ancient.history", 401 * day);
        create("00000002.history", 401 * day);
        for index in 0..MAX_HISTORIES as u64 + 3 {
            create(&format!("postgresql-{index}.history"), index);
        }
        create("oracle-running.history", 500 * day);
        prune(directory.path(), &BTreeSet::from([directory.path().join("oracle-running.history")]));
        let is_kept = |name: &str| directory.path().join(name).exists();
        assert!(is_kept("oracle-running.history"));
        assert!(!is_kept("oracle-ancient.history") && is_kept("00000002.history"));
        assert!(
            is_kept("postgresql-0.history")
                && is_kept("postgresql-999.history")
                && !is_kept("postgresql-1000.history")
                && !is_kept("postgresql-1002.history")
        );
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), MAX_HISTORIES + 2);
    }
}
