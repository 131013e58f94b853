//! `report`: an HTML page about the host.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use hugepage_host::host_advice::verdict::HostVerdict;
use hugepage_kernel::Root;

use crate::atomic_file;
use crate::commands::survey::ShowOptions;
use crate::exit::{self, Exit};
use crate::history::HostHistory;
use crate::host_options::within;
use crate::output::host_rows::HostOutput;
use crate::output::stream::stdout;
use crate::privileges::Needs;
use crate::report;

/// The report is readable by all users: it contains no secrets.
const REPORT_MODE: u32 = 0o644;

/// Options of `report`.
#[derive(Clone, Debug, Args)]
pub struct ReportOptions {
    #[command(flatten)]
    show: ShowOptions,
    /// Write the report to FILE, or to standard output if FILE is "-"
    #[arg(long, value_name = "FILE")]
    html: PathBuf,
    /// Show the page tables of N connections
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = within::<u64, 1, 1_000_000>)]
    connections: u64,
}

impl ReportOptions {
    /// The privileges that the command needs.
    pub fn needs(&self) -> Needs {
        let needs = Needs::default();
        if self.html == Path::new("-") { needs } else { needs.file(&self.html) }
    }
}

pub fn run(root: &Root, options: &ReportOptions) -> anyhow::Result<Exit> {
    let (survey, sizings) = options.show.survey_with_sizings(root)?;
    let output = HostOutput::new(&survey, &sizings);
    let history = HostHistory::open(root, &options.show.survey.state_dir);
    let histories = survey.instances.iter().map(|instance| match &options.show.snapshot {
        None => history.stored(&instance.id),
        Some(_) => (Vec::new(), vec!["a capture has no history".to_owned()]),
    });
    let html = report::render(&survey, &output, options.connections, histories.collect())?;
    write(&options.html, html.as_bytes()).with_context(|| format!("could not write \"{}\"", options.html.display()))?;
    Ok(exit::of_verdict(&HostVerdict::of_survey(&survey, &sizings)))
}

fn write(path: &Path, html: &[u8]) -> io::Result<()> {
    if path == Path::new("-") { stdout().write_all(html) } else { atomic_file::write(path, html, REPORT_MODE) }
}
