//! `report`: one page about the host, for people who have only a browser.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use hugepage_core::read::Root;

use crate::atomic_file;
use crate::commands::status::{Look, look};
use crate::exit::{self, Exit};
use crate::output::rows::host;
use crate::report::{Extent, page};

/// Who may read the page: everybody, as with other reports; it has no secrets.
const MODE: u32 = 0o644;

/// Options of `report`.
#[derive(Clone, Debug, Args)]
pub struct Report {
    #[command(flatten)]
    look: Look,
    /// Write the page to FILE, or to standard output if that is "-"
    #[arg(long, value_name = "FILE")]
    html: PathBuf,
    /// Work out page tables for up to so many connections
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    connections: u64,
}

pub fn run(root: &Root, report: &Report) -> anyhow::Result<Exit> {
    let (survey, sizings) = look(root, &report.look);
    let out = host(&survey, &sizings);
    let extent = Extent { connections: report.connections, state_directory: &report.look.state_dir };
    let html = page(root, &survey, &out, &extent)?;
    write(&report.html, html.as_bytes()).with_context(|| format!("could not write \"{}\"", report.html.display()))?;
    Ok(exit::of(&survey))
}

fn write(path: &Path, html: &[u8]) -> anyhow::Result<()> {
    if path == Path::new("-") {
        return Ok(std::io::stdout().write_all(html)?);
    }
    // Renaming onto a device such as /dev/null, or onto a link that somebody laid, would put a file in its place.
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => bail!("it is there, and not a plain file"),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(atomic_file::write(path, html, MODE)?),
    }
}
