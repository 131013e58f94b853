//! `size`: the recommended size of every pool, for running and for stopped servers.

mod output;
mod print;
pub mod sizing;

use std::path::PathBuf;

use clap::Args;
use hugepage_core::read::Root;

use self::output::SizeOutput;
use self::print::{csv, print};
use self::sizing::host_sizing;
use super::survey::SurveyOptions;
use crate::exit::{self, Exit};
use crate::output::{Format, json};
use crate::privileges::Needs;

/// Options of `size`.
#[derive(Clone, Debug, Args)]
pub struct SizeOptions {
    #[command(flatten)]
    survey: SurveyOptions,
    /// Data directory of a stopped PostgreSQL server, in addition to those in the directories of packages
    #[arg(long, value_name = "DIR")]
    postgresql_data: Vec<PathBuf>,
    /// Count running servers only
    #[arg(long)]
    running_only: bool,
    /// Compare with the result of hugepages_settings.sh (MOS 401749.1)
    #[arg(long)]
    explain: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl SizeOptions {
    /// What it does besides looking.
    pub fn needs(&self) -> Needs {
        if self.running_only { Needs::default() } else { Needs::default().programs() }
    }
}

pub fn run(root: &Root, options: &SizeOptions) -> anyhow::Result<Exit> {
    let sizing = host_sizing(root, &options.survey, &options.postgresql_data, options.running_only);
    let output = SizeOutput::new(root, &sizing, options.explain);
    match options.format {
        Format::Json => json(&output)?,
        Format::Csv => csv(&output)?,
        Format::Table => print(&output),
    }
    let known = output.not_counted.iter().all(|one| one.is_known);
    let complete = known && output.pools.iter().all(|pool| pool.recommended_nr_hugepages.is_some());
    Ok(match output.pools.iter().any(|pool| !pool.does_not_fit.is_empty()) {
        true => exit::WARNING,
        false if complete => exit::OK,
        false => exit::UNKNOWN,
    })
}
