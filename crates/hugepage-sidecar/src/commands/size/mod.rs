//! `size`: the pools that the host should have, for what runs and for what is only configured.

mod out;
mod print;

use std::path::PathBuf;

use clap::Args;
use hugepage_core::Notes;
use hugepage_core::assess::Sizing;
use hugepage_core::collect::instances::Survey;
use hugepage_core::collect::stopped_databases::{self, StoppedDatabase};
use hugepage_core::read::Root;

use self::out::Out;
use self::print::{csv, print};
use super::status::{Look, look_at};
use crate::exit::{self, Exit};
use crate::output::{Format, json};
use crate::stopped_clusters;

/// Options of `size`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    #[command(flatten)]
    look: Look,
    /// A data directory of a PostgreSQL server that is down; more are found where packages put them
    #[arg(long, value_name = "DIR")]
    postgresql_data: Vec<PathBuf>,
    /// Count only what runs
    #[arg(long)]
    running_only: bool,
    /// Show how hugepages_settings.sh (MOS 401749.1) would have counted, and why it differs
    #[arg(long)]
    explain: bool,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// A host's sizing, with all that it was worked out from.
pub struct Sized {
    pub survey: Survey,
    pub down: Vec<StoppedDatabase>,
    pub sizings: Vec<Sizing>,
    pub notes: Vec<String>,
}

/// Works it out.
pub fn of(root: &Root, options: &Look, postgresql_data: &[PathBuf], running_only: bool) -> Sized {
    let survey = look_at(root, options);
    let mut notes = Notes::default();
    let mut down = Vec::new();
    if !running_only {
        down = stopped_databases::oracle(root, &survey, &mut notes);
        down.extend(stopped_clusters::clusters(root, &survey, postgresql_data, &mut notes));
    }
    let needs: Vec<_> = down.iter().filter_map(StoppedDatabase::need).collect();
    let sizings = survey.sizings(&needs, options.reserve_percent);
    Sized { survey, down, sizings, notes: notes.into_vec() }
}

pub fn run(root: &Root, options: &Options) -> anyhow::Result<Exit> {
    let sized = of(root, &options.look, &options.postgresql_data, options.running_only);
    let out = Out::of(root, &sized, options);
    match options.format {
        Format::Json => json(&out)?,
        Format::Csv => csv(&out)?,
        Format::Table => print(&out),
    }
    let known = out.not_counted.iter().all(|one| one.is_known);
    let complete = known && out.pools.iter().all(|pool| pool.recommended_nr_hugepages.is_some());
    Ok(match out.pools.iter().any(|pool| !pool.does_not_fit.is_empty()) {
        true => exit::WARNING,
        false if complete => exit::OK,
        false => exit::UNKNOWN,
    })
}
