//! `capture`: what is read of this host, as JSON.

use clap::Args;
use hugepage_kernel::Root;

use super::survey::{Capture, SurveyOptions, snapshot};
use crate::exit::{self, Exit};
use crate::output::json;

/// Options of `capture`.
#[derive(Clone, Debug, Args)]
pub struct CaptureOptions {
    #[command(flatten)]
    survey: SurveyOptions,
}

pub fn run(root: &Root, options: &CaptureOptions) -> anyhow::Result<Exit> {
    let mut snapshot = snapshot(root, &options.survey, None)?;
    snapshot.find_stopped_clusters(root, &[], None);
    json(&Capture::new(snapshot))?;
    Ok(exit::OK)
}
