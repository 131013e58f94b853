//! `watch`: looks at an interval, says what is new as the PostgreSQL extension's worker does, keeps the history of each
//! instance, and writes files for others.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use hugepage_core::advise::events::Volume;
use hugepage_core::advise::log::Message;
use hugepage_core::assess::Sizing;
use hugepage_core::collect::instances::{Survey, survey_for};
use hugepage_core::metrics::{Snapshot, text};
use hugepage_core::read::Root;

use crate::atomic_file;
use crate::commands::oracle::Access;
use crate::commands::status::Accounts;
use crate::exit::{self, Exit};
use crate::history::Past;
use crate::oracle;
use crate::output::rows;
use crate::signals::Alarm;

/// Options of `watch`.
#[derive(Debug, Args)]
pub struct Options {
    /// Keep this much of the host's memory for base pages, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=90))]
    reserve_percent: u32,
    /// How often to look
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = interval)]
    interval: Duration,
    /// Where to keep the history of each instance
    #[arg(long, value_name = "DIR", default_value = crate::state::DIRECTORY)]
    state_dir: PathBuf,
    #[command(flatten)]
    accounts: Accounts,
    /// How many records to keep of each instance; 0 for none
    #[arg(long, value_name = "RECORDS", default_value_t = 1000)]
    history_size: usize,
    /// Write the same as `status --format json` to FILE after each look
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the same as `metrics` to FILE after each look, for node_exporter's textfile collector
    #[arg(long, value_name = "FILE")]
    textfile: Option<PathBuf>,
    /// Write the files that an Oracle Database reads into DIR after each look, see docs/oracle.md
    #[arg(long, value_name = "DIR")]
    oracle_dir: Option<PathBuf>,
    #[command(flatten)]
    access: Access,
    /// Look once, and end with the exit status of `status`
    #[arg(long)]
    once: bool,
}

fn interval(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(interval) if interval >= Duration::from_secs(1) => Ok(interval),
        Ok(_) => Err("less than a second".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

pub fn run(root: &Root, options: &Options) -> anyhow::Result<Exit> {
    if options.history_size > 0 {
        let directory = &options.state_dir;
        std::fs::create_dir_all(directory)
            .with_context(|| format!("could not make {}, where --state-dir keeps the history", directory.display()))?;
    }
    let mut alarm = Alarm::new().context("could not listen to signals")?;
    let mut past = Past::of(root, &options.state_dir);
    let mut said = Troubles::default();
    loop {
        let begun = Instant::now();
        let mut survey = survey_for(root, options.reserve_percent, &options.accounts.service_account);
        for said_of in past.add(&mut survey, options.history_size) {
            for (volume, message) in said_of.messages {
                say(&said_of.instance, volume, &message);
            }
            // Its text has that of the error below it.
            said.keep(said_of.trouble.map(|trouble| anyhow::Error::msg(trouble.to_string())));
        }
        let sizings = survey.sizings(&[], options.reserve_percent);
        for trouble in write_files(root, &survey, &sizings, options) {
            said.keep(Some(trouble));
        }
        if options.once {
            return Ok(exit::of(&survey));
        }
        if alarm.wait(options.interval.saturating_sub(begun.elapsed())).context("could not wait")? {
            return Ok(exit::OK);
        }
    }
}

/// All files of one look; one that can't be written keeps back none of the others. Returns what went wrong.
fn write_files(root: &Root, survey: &Survey, sizings: &[Sizing], options: &Options) -> Vec<anyhow::Error> {
    let written = |path: &Path, content: &[u8]| {
        atomic_file::write(path, content, 0o644).with_context(|| format!("could not write {}", path.display()))
    };
    let json = options.json.as_deref().map(|path| {
        let mut text = serde_json::to_vec_pretty(&rows::host(survey, sizings))?;
        text.push(b'\n');
        written(path, &text)
    });
    let metrics = options.textfile.as_deref().map(|path| written(path, text(&Snapshot::from(survey)).as_bytes()));
    let oracle = options.oracle_dir.as_deref().map(|directory| {
        let next = Some(options.interval).filter(|_| !options.once);
        let snapshot = oracle::from_survey::snapshot(root, survey, sizings, next);
        oracle::write(directory, &snapshot, &options.access.options()).map(|_| ())
    });
    [json, metrics, oracle].into_iter().flatten().filter_map(Result::err).collect()
}

/// To standard error, for the journal with its priorities (sd-daemon(3)).
fn say(instance: &str, volume: Volume, message: &Message) {
    let level = match volume {
        Volume::Log => "LOG",
        Volume::Warning | Volume::Regression => "WARNING",
    };
    let parts = [("DETAIL", &message.detail), ("HINT", &message.hint)];
    let mut lines = vec![format!("{level}:  {instance}: {}", message.message)];
    for (name, text) in parts {
        lines.extend(text.iter().flat_map(|text| text.lines()).map(|line| format!("{name}:  {instance}: {line}")));
    }
    write_lines(if level == "LOG" { 6 } else { 4 }, &lines);
}

fn write_lines(priority: u8, lines: &[String]) {
    let to_journal = std::env::var_os("JOURNAL_STREAM").is_some();
    for line in lines {
        match to_journal {
            true => eprintln!("<{priority}>{line}"),
            false => eprintln!("{} {line}", humantime::format_rfc3339_seconds(std::time::SystemTime::now())),
        }
    }
}

/// What went wrong with the sidecar itself: once when it begins, not at every look.
#[derive(Debug, Default)]
struct Troubles(Vec<String>);

impl Troubles {
    fn keep(&mut self, trouble: Option<anyhow::Error>) {
        let Some(text) = trouble.map(|trouble| format!("{trouble:#}")) else { return };
        if self.0.len() < 50 && !self.0.contains(&text) {
            write_lines(4, &[format!("WARNING:  {text}")]);
            self.0.push(text);
        }
    }
}
