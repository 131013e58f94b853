//! `metrics`: the host and every instance on it as OpenMetrics text, for node_exporter's textfile collector.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use hugepage_assess::metrics::{MetricsSnapshot, text};
use hugepage_kernel::Root;

use crate::atomic_file;
use crate::commands::survey::{SurveyOptions, survey_with_history};
use crate::exit::{self, Exit};
use crate::output::escape;
use crate::output::stream::{complain, stdout};
use crate::privileges::Needs;
use crate::server_program::asked_starts::asking;

/// Options of `metrics`.
#[derive(Clone, Debug, Args)]
pub struct MetricsOptions {
    #[command(flatten)]
    survey: SurveyOptions,
    /// Write to FILE instead of standard output; the file is replaced atomically
    #[arg(long, value_name = "FILE")]
    textfile: Option<PathBuf>,
}

impl MetricsOptions {
    /// The privileges that the command needs.
    pub fn needs(&self) -> Needs {
        self.textfile.iter().fold(Needs::default().servers(), |needs, file| needs.file(file))
    }
}

/// Prints or writes the metrics. The exit status is OK if that succeeded: the alert rules evaluate the text.
pub fn run(root: &Root, options: &MetricsOptions) -> anyhow::Result<Exit> {
    options.survey.accounts.check(root)?;
    let survey = asking(root, |ask| survey_with_history(root, &options.survey, ask));
    let text = text(&MetricsSnapshot::from(&survey));
    match &options.textfile {
        Some(path) => atomic_file::write(path, text.as_bytes(), 0o644).with_context(|| path.display().to_string())?,
        None => stdout().write_all(text.as_bytes())?,
    }
    let notes = survey.instances.iter().flat_map(|instance| &instance.notes).chain(&survey.notes);
    notes.for_each(|note| complain!("hugepage-sidecar: {}", escape::line(note)));
    Ok(exit::OK)
}
