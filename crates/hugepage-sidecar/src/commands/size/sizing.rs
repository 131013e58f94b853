//! The pages that the servers of a host need, running or stopped.

use std::path::{self, Path, PathBuf};

use hugepage_assess::assessment::Sizing;
use hugepage_assess::stopped_databases::StoppedDatabase;
use hugepage_host::{AskStart, Survey, stopped_clusters};
use hugepage_kernel::stranger::limit;
use hugepage_kernel::{InstanceFiles, Notes, Root};
use hugepage_oracle::readers::Parameters;
use hugepage_oracle::stopped::StoppedOracle;
use hugepage_oracle::switchover::PrimaryNeed;

use crate::commands::survey::{SurveyOptions, survey_with_history};

/// The recommended pools of a host, and what they were derived from.
pub struct HostSizing {
    pub survey: Survey,
    pub down: Vec<StoppedDatabase>,
    pub sizings: Vec<Sizing>,
    /// The need of each primary by its parameter file; the error says why it is unknown.
    pub primaries: Vec<(String, Result<PrimaryNeed, String>)>,
    pub notes: Vec<String>,
}

/// Surveys the host and sizes its pools. `stopped`: data directories of stopped PostgreSQL servers in addition to those in the
/// directories of packages; `None` for running servers only. `primaries`: parameter files of primaries whose standbys are here. `ask`:
/// whom it asks what a start asks for.
pub fn host_sizing(
    root: &Root,
    options: &SurveyOptions,
    stopped: Option<&[PathBuf]>,
    primaries: &[PathBuf],
    ask: Option<&AskStart<'_>>,
) -> HostSizing {
    let survey = survey_with_history(root, options, ask);
    let mut notes = Notes::default();
    let mut down = Vec::new();
    if let Some(postgresql_data) = stopped {
        down = survey.stopped.iter().map(StoppedOracle::database).collect();
        down.extend(stopped_clusters(root, &survey, postgresql_data, ask, &mut notes));
    }
    let needs: Vec<_> = down.iter().filter_map(StoppedDatabase::need).collect();
    let of_file = |path: &PathBuf| (path.to_string_lossy().into_owned(), need_of_primary(&survey, path));
    let primaries: Vec<_> = primaries.iter().map(of_file).collect();
    let known: Vec<_> = primaries.iter().filter_map(|(_, need)| need.as_ref().ok().cloned()).collect();
    let sizings = survey.sizings_for_switchover(&needs, &known, options.reserve_percent);
    HostSizing { survey, down, sizings, primaries, notes: notes.into_vec() }
}

/// The need of the primary with the parameter file `path`. The file is an argument, so it is read as it is, also beside
/// `--root`.
fn need_of_primary(survey: &Survey, path: &Path) -> Result<PrimaryNeed, String> {
    let size = survey.default_page_size().ok_or("this kernel has no huge pages")?;
    let path = path::absolute(path).map_err(|error| error.to_string())?;
    let read = InstanceFiles::own(&Root::live()).read(&path.to_string_lossy(), limit::CONFIGURATION);
    let bytes = read.map_err(|error| error.to_string())?;
    survey.need_of_primary(&Parameters::of_each_instance(&bytes), size)
}
