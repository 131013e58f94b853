//! The pages that the servers of a host need, running or stopped.

use std::path::PathBuf;

use hugepage_core::Notes;
use hugepage_core::assess::Sizing;
use hugepage_core::collect::instances::{StoppedOracle, Survey};
use hugepage_core::collect::stopped_databases::StoppedDatabase;
use hugepage_core::read::Root;

use crate::commands::survey::{SurveyOptions, survey_with_history};
use crate::stopped_clusters;

/// The recommended pools of a host, and what they were derived from.
pub struct HostSizing {
    pub survey: Survey,
    pub down: Vec<StoppedDatabase>,
    pub sizings: Vec<Sizing>,
    pub notes: Vec<String>,
}

/// Surveys the host, with stopped servers unless `running_only`, and sizes its pools.
pub fn host_sizing(
    root: &Root,
    options: &SurveyOptions,
    postgresql_data: &[PathBuf],
    running_only: bool,
) -> HostSizing {
    let survey = survey_with_history(root, options);
    let mut notes = Notes::default();
    let mut down = Vec::new();
    if !running_only {
        down = survey.stopped.iter().map(StoppedOracle::database).collect();
        down.extend(stopped_clusters::clusters(root, &survey, postgresql_data, &mut notes));
    }
    let needs: Vec<_> = down.iter().filter_map(StoppedDatabase::need).collect();
    let sizings = survey.sizings(&needs, options.reserve_percent);
    HostSizing { survey, down, sizings, notes: notes.into_vec() }
}
