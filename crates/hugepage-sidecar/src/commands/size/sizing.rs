//! The pages that the servers of a host need, running or stopped.

use std::path::PathBuf;

use hugepage_assess::assessment::Sizing;
use hugepage_assess::stopped_databases::StoppedDatabase;
use hugepage_host::{AskStart, Survey, stopped_clusters};
use hugepage_kernel::{Notes, Root};
use hugepage_oracle::stopped::StoppedOracle;

use crate::commands::survey::{SurveyOptions, survey_with_history};

/// The recommended pools of a host, and what they were derived from.
pub struct HostSizing {
    pub survey: Survey,
    pub down: Vec<StoppedDatabase>,
    pub sizings: Vec<Sizing>,
    pub notes: Vec<String>,
}

/// Surveys the host and sizes its pools. `stopped`: data directories of stopped PostgreSQL servers in addition to those in the
/// directories of packages; `None` for running servers only. `ask`: whom it asks what a start asks for.
pub fn host_sizing(
    root: &Root,
    options: &SurveyOptions,
    stopped: Option<&[PathBuf]>,
    ask: Option<&AskStart<'_>>,
) -> HostSizing {
    let survey = survey_with_history(root, options, ask);
    let mut notes = Notes::default();
    let mut down = Vec::new();
    if let Some(postgresql_data) = stopped {
        down = survey.stopped.iter().map(StoppedOracle::database).collect();
        let clusters = stopped_clusters(root, &survey, postgresql_data, ask, &mut notes);
        down.extend(clusters.into_iter().map(|cluster| cluster.database));
    }
    let needs: Vec<_> = down.iter().filter_map(StoppedDatabase::need).collect();
    let sizings = survey.sizings(&needs, options.reserve_percent);
    HostSizing { survey, down, sizings, notes: notes.into_vec() }
}
