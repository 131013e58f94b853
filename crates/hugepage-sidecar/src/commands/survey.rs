//! The survey of a host that most commands begin with.

use std::path::PathBuf;

use clap::Args;
use hugepage_core::assess::Sizing;
use hugepage_core::collect::instances::{Survey, survey};
use hugepage_core::read::Root;

use crate::history::HostHistory;

/// What every look at a host takes.
#[derive(Clone, Debug, Args)]
pub struct SurveyOptions {
    /// Keep this much of the host's memory for base pages, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=90))]
    pub reserve_percent: u32,
    /// Where `watch` keeps the history of each instance
    #[arg(long, value_name = "DIR", default_value = crate::state::DIRECTORY)]
    pub state_dir: PathBuf,
}

/// Looks at the host and at its instances' past.
pub fn survey_with_history(root: &Root, options: &SurveyOptions) -> Survey {
    let mut survey = survey(root, options.reserve_percent);
    HostHistory::open(root, &options.state_dir).add_regressions_to(&mut survey);
    survey
}

/// The same, with its pools as they should be for what runs.
pub fn survey_with_sizings(root: &Root, options: &SurveyOptions) -> (Survey, Vec<Sizing>) {
    let survey = survey_with_history(root, options);
    let sizings = survey.sizings(&[], options.reserve_percent);
    (survey, sizings)
}
