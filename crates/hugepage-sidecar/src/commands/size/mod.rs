//! `size`: the recommended size of every pool, for running and for stopped servers.

mod output;
mod planned;
mod print;
mod sessions;
pub mod sizing;

use std::path::PathBuf;

use clap::Args;
use hugepage_kernel::Root;

use self::output::SizeOutput;
use self::planned::PlannedOptions;
use self::print::print;
use self::sessions::SessionsOutput;
use self::sizing::HostSizing;
use super::survey::ShowOptions;
use crate::exit::{self, Exit};
use crate::host_options::within;
use crate::output::{Format, json};
use crate::server_program::asked_starts::asking;

/// Options of `size`.
#[derive(Clone, Debug, Args)]
pub struct SizeOptions {
    #[command(flatten)]
    show: ShowOptions,
    /// Data directory of a stopped PostgreSQL server, in addition to those in the directories of packages
    #[arg(long, value_name = "DIR", conflicts_with = "snapshot")]
    postgresql_data: Vec<PathBuf>,
    /// Count running servers only
    #[arg(long)]
    running_only: bool,
    /// Predict the page tables of N sessions of each server, in 4 kB pages and in huge pages
    #[arg(long, value_name = "N", value_parser = within::<u64, 1, 1_000_000>)]
    sessions: Option<u64>,
    #[command(flatten)]
    planned: PlannedOptions,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn run(root: &Root, options: &SizeOptions) -> anyhow::Result<Exit> {
    if let Some(planned) = options.planned.run(root, options.format) {
        return planned;
    }
    let counts_stopped = !options.running_only;
    let survey = asking(root, |ask| {
        options.show.survey(root, ask, |snapshot| {
            if counts_stopped {
                snapshot.find_stopped_clusters(root, &options.postgresql_data, ask);
            }
        })
    })?;
    let sizing = HostSizing::new(survey, counts_stopped);
    let mut output = SizeOutput::new(&sizing);
    output.sessions = options.sessions.and_then(|sessions| SessionsOutput::new(&sizing, sessions));
    match options.format {
        Format::Json => json(&output)?,
        Format::Table => print(&output),
    }
    let survey = &sizing.survey;
    let sees_all = survey.host.meminfo.is_some() && !survey.host.processes_are_hidden && survey.host.unread.is_empty();
    let known = sees_all && output.not_counted.iter().all(|one| one.is_known);
    let complete = known && output.pools.iter().all(|pool| pool.recommended_nr_hugepages.is_some());
    Ok(match output.pools.iter().any(|pool| !pool.does_not_fit.is_empty()) {
        true => exit::WARNING,
        false if complete => exit::OK,
        false => exit::UNKNOWN,
    })
}
