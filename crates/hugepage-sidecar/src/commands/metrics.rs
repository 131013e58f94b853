//! `metrics`: the host and every instance on it as OpenMetrics text, for node_exporter's textfile collector.
//!
//! ```text
//! $ hugepage-sidecar metrics
//! # HELP hugepage_verdict Severity of the most severe finding: 0 ok, 1 notice, 2 warning, 3 critical.
//! # TYPE hugepage_verdict gauge
//! hugepage_verdict{kind="oracle",name="orcl"} 0
//! ...
//! ```

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use hugepage_host::Survey;
use hugepage_host::metrics::{MetricsSnapshot, text};
use hugepage_kernel::Root;

use crate::commands::survey::ShowOptions;
use crate::exit::Exit;
use crate::history::HostHistory;
use crate::output::{complain, escape, stdout};
use crate::privileges::{self, Needs};

/// Options of `metrics`.
#[derive(Debug, Args)]
pub struct MetricsOptions {
    #[command(flatten)]
    show: ShowOptions,
    /// Write to FILE instead of standard output; the file is replaced atomically
    #[arg(long, value_name = "FILE")]
    textfile: Option<PathBuf>,
    /// Do not write notes to standard error, which cron would mail
    #[arg(long)]
    quiet: bool,
}

impl MetricsOptions {
    /// The privileges that the command needs.
    pub fn needs(&self) -> Needs {
        self.textfile
            .iter()
            .fold(Needs::default(), |needs, file| needs.file(file))
    }
}

/// Prints or writes the metrics. The exit status is OK if that succeeded: the alert rules evaluate the text.
pub fn run(root: &Root, options: &MetricsOptions) -> anyhow::Result<Exit> {
    let begun = Instant::now();
    let survey = options.show.survey(root, None, None)?;
    let text = match options.show.snapshot {
        None => of_survey(
            root,
            &survey,
            &HostHistory::open(root, &options.show.survey.state_dir),
            begun,
        ),
        Some(_) => text(&MetricsSnapshot::from(&survey)),
    };
    match &options.textfile {
        Some(path) => privileges::replace_file(path, text.as_bytes())
            .with_context(|| path.display().to_string())?,
        None => stdout().write_all(text.as_bytes())?,
    }
    let notes = survey.instances.iter().flat_map(|instance| &instance.notes);
    let notes = notes.chain(&survey.notes);
    for note in notes.filter(|_| !options.quiet) {
        complain!("hugepage-sidecar: {}", escape::line(note));
    }
    Ok(Exit::Ok)
}

/// The text of a survey that began at `begun`.
pub fn of_survey(root: &Root, survey: &Survey, history: &HostHistory, begun: Instant) -> String {
    let mut snapshot = MetricsSnapshot::from(survey);
    snapshot.survey_duration = root.is_live().then(|| begun.elapsed());
    for (metrics, instance) in snapshot.instances.iter_mut().zip(&survey.instances) {
        let (histories, _) = history.stored(&instance.id);
        let records = histories.iter().flat_map(|history| &history.records);
        metrics.last_regression = records.filter_map(|record| Some(record.loss()?.at)).max();
    }
    text(&snapshot)
}
