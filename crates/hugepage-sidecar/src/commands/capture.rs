//! Prints what was read of this host, from which every command shows it again elsewhere.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use clap::Args;
use hugepage_host::Snapshot;
use hugepage_kernel::Root;
use serde::{Deserialize, Serialize};

use super::survey::{SurveyOptions, snapshot};
use crate::exit::{self, Exit};
use crate::output::json;

/// The version that writes and reads a capture: what it has may be other in another one.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Options of `capture`.
#[derive(Clone, Debug, Args)]
pub struct CaptureOptions {
    #[command(flatten)]
    survey: SurveyOptions,
}

/// A file that `capture` wrote.
#[derive(Serialize, Deserialize)]
struct Capture<S> {
    hugepage_sidecar: String,
    snapshot: S,
}

pub fn run(root: &Root, options: &CaptureOptions) -> anyhow::Result<Exit> {
    let mut snapshot = snapshot(root, &options.survey, None)?;
    snapshot.find_stopped_clusters(root, &[], None);
    json(&Capture { hugepage_sidecar: VERSION.to_owned(), snapshot })?;
    Ok(exit::OK)
}

/// The snapshot of a file.
#[expect(clippy::disallowed_methods, reason = "a file that the command line names")]
pub fn read(file: &Path) -> anyhow::Result<Snapshot> {
    let name = || format!("could not read \"{}\"", file.display());
    let text = fs::read(file).with_context(name)?;
    let found: Capture<serde_json::Value> =
        serde_json::from_slice(&text).context("it is no output of `hugepage-sidecar capture`").with_context(name)?;
    let by = found.hugepage_sidecar;
    ensure!(by == VERSION, "{}: version {by} wrote it, and this is {VERSION}", name());
    serde_json::from_value(found.snapshot).with_context(name)
}
