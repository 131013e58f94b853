//! `report`: one page about the host, for people who have only a browser.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use hugepage_core::read::Root;

use crate::atomic_file;
use crate::commands::survey::{SurveyOptions, survey_with_sizings};
use crate::exit::{self, Exit};
use crate::output::rows::host;
use crate::report::{self, ReportScope};

/// Who may read the page: everybody, as with other reports; it has no secrets.
const REPORT_MODE: u32 = 0o644;

/// Options of `report`.
#[derive(Clone, Debug, Args)]
pub struct ReportOptions {
    #[command(flatten)]
    survey: SurveyOptions,
    /// Write the page to FILE, or to standard output if that is "-"
    #[arg(long, value_name = "FILE")]
    html: PathBuf,
    /// Work out page tables for up to so many connections
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    connections: u64,
}

pub fn run(root: &Root, options: &ReportOptions) -> anyhow::Result<Exit> {
    let (survey, sizings) = survey_with_sizings(root, &options.survey);
    let output = host(&survey, &sizings);
    let scope = ReportScope { connections: options.connections, state_directory: &options.survey.state_dir };
    let html = report::render(root, &survey, &output, &scope)?;
    write(&options.html, html.as_bytes()).with_context(|| format!("could not write \"{}\"", options.html.display()))?;
    Ok(exit::of_survey(&survey))
}

fn write(path: &Path, html: &[u8]) -> anyhow::Result<()> {
    if path == Path::new("-") {
        return Ok(std::io::stdout().write_all(html)?);
    }
    // Renaming onto a device such as /dev/null, or onto a link that somebody laid, would put a file in its place.
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => bail!("it is there, and not a plain file"),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(atomic_file::write(path, html, REPORT_MODE)?),
    }
}
