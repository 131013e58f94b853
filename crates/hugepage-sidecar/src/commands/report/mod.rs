//! `report`: an HTML page about the host, one file that loads no other file and runs no script.
//!
//! ```text
//! $ hugepage-sidecar report --html -
//! <main id="main">
//! <section class="verdict ok" aria-labelledby="verdict">
//!   <h2 id="verdict"><span class="badge ok"><span aria-hidden="true">✓</span> <span data-field="verdict">ok</span></span></h2>
//!   <p class="message" data-field="message">The one instance is in huge pages.</p>
//!   <dl class="tiles">
//!     <div>
//! ...
//! ```
//!
//! It shows the numbers of [`HostOutput`], which `status --format json` prints, of the survey, and of the histories. Templates escape
//! all values (askama, by the extension .html), because directories and process titles are not trusted.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use askama::Template;
use clap::Args;
use hugepage_assess::assessment::{Severity, page_tables};
use hugepage_assess::history::Record;
use hugepage_facts::{Landing, escape};
use hugepage_host::{HostVerdict, Instance, Survey};
use hugepage_kernel::{Bytes, PageSize, Root};

use crate::commands::survey::{ShowOptions, within};
use crate::exit::Exit;
use crate::history::HostHistory;
use crate::history::stored::StoredHistory;
use crate::output::rows::{HostOutput, InstanceRow, time};
use crate::output::stdout;
use crate::privileges::{self, Needs};

/// Records of an instance that are listed.
const MAX_ENTRIES: usize = 25;

/// Options of `report`.
#[derive(Debug, Args)]
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
        if self.html == Path::new("-") {
            needs
        } else {
            needs.file(&self.html)
        }
    }
}

pub fn run(root: &Root, options: &ReportOptions) -> anyhow::Result<Exit> {
    let (survey, sizings) = options.show.survey_with_sizings(root)?;
    let output = HostOutput::new(&survey, &sizings);
    let history = HostHistory::open(root, &options.show.survey.state_dir);
    let histories = survey
        .instances
        .iter()
        .zip(&output.instances)
        .map(|(instance, row)| {
            let (stored, notes) = match &options.show.snapshot {
                None => history.stored(&instance.id),
                Some(_) => (Vec::new(), vec!["a capture has no history".to_owned()]),
            };
            InstanceHistory::new(row, stored, notes)
        });
    let html = render(&survey, &output, options.connections, histories.collect())?;
    let written = match &*options.html {
        path if path == Path::new("-") => stdout().write_all(html.as_bytes()),
        path => privileges::replace_file(path, html.as_bytes()),
    };
    written.with_context(|| format!("could not write \"{}\"", options.html.display()))?;
    Ok(Exit::of_verdict(&HostVerdict::of_survey(&survey, &sizings)))
}

#[derive(Template)]
#[template(path = "page.html")]
struct ReportPage<'a> {
    host: &'a HostOutput,
    name: &'a str,
    version: &'static str,
    in_huge_pages: usize,
    page_tables: Vec<PageTablesOf<'a>>,
    histories: Vec<InstanceHistory<'a>>,
}

/// The page. `output` must be that of `survey`; `connections` is the number for which page tables are computed.
fn render(
    survey: &Survey,
    output: &HostOutput,
    connections: u64,
    histories: Vec<InstanceHistory<'_>>,
) -> askama::Result<String> {
    let base = survey.host.base_page_size;
    let instances = survey.instances.iter().zip(&output.instances);
    let page = ReportPage {
        host: output,
        name: output.host_name.as_deref().unwrap_or("an unknown host"),
        version: env!("CARGO_PKG_VERSION"),
        in_huge_pages: survey.landed_in(Landing::Hugetlb),
        page_tables: instances
            .map(|(instance, row)| PageTablesOf::new(instance, row, base, connections))
            .collect(),
        histories,
    };
    Ok(escape::lines(&page.render()?) + "\n")
}

/// The page tables of an instance at a number of connections, in base pages and in huge pages.
struct PageTablesOf<'a> {
    row: &'a InstanceRow,
    connections: u64,
    /// The size of the pages, and of the page tables if each connection has used all shared memory.
    on_base: Option<(PageSize, Bytes)>,
    on_huge: Option<(PageSize, Bytes)>,
}

impl<'a> PageTablesOf<'a> {
    fn new(
        instance: &Instance,
        row: &'a InstanceRow,
        base: Option<PageSize>,
        connections: u64,
    ) -> Self {
        let connections = connections.max(row.processes);
        let at_most = |page_size: Option<PageSize>| {
            let segment = instance.status.facts.segment_size()?;
            let tables = &instance.memory.page_tables;
            Some((
                page_size?,
                page_tables::at(tables, connections, segment, page_size?)?,
            ))
        };
        Self {
            row,
            connections,
            on_base: at_most(base),
            on_huge: at_most(instance.status.facts.pool_state.huge_page_size),
        }
    }
}

/// The histories of one instance.
struct InstanceHistory<'a> {
    row: &'a InstanceRow,
    /// Those with records.
    recorded: Vec<StoredHistory>,
    /// Whether a history could not be read.
    is_hidden: bool,
    /// Notes on files and records that were skipped.
    notes: Vec<String>,
}

impl<'a> InstanceHistory<'a> {
    /// `notes`: on what could not be read.
    fn new(row: &'a InstanceRow, stored: Vec<StoredHistory>, mut notes: Vec<String>) -> Self {
        let is_hidden = !notes.is_empty();
        for stored in &stored {
            if stored.foreign > 0 {
                notes.push(format!(
                    "{} records in \"{}\" belong to other instances",
                    stored.foreign, stored.path
                ));
            }
            if stored.damaged > 0 {
                notes.push(format!(
                    "{} lines in \"{}\" are damaged",
                    stored.damaged, stored.path
                ));
            }
        }
        let recorded = stored
            .into_iter()
            .filter(|stored| !stored.records.is_empty())
            .collect();
        Self {
            row,
            recorded,
            is_hidden,
            notes,
        }
    }
}

fn starts(records: &[Record]) -> usize {
    records
        .iter()
        .filter(|record| record.event.is_start())
        .count()
}

fn losses(records: &[Record]) -> usize {
    records
        .iter()
        .filter(|record| record.lost.is_some())
        .count()
}

/// The time of a record, as in RFC 3339 if it can be read.
fn recorded_at(record: &Record) -> String {
    humantime::parse_rfc3339(&record.recorded_at).map_or_else(|_| record.recorded_at.clone(), time)
}

/// A timestamp of RFC 3339 for people.
fn moment(at: &str) -> String {
    at.replacen('T', " ", 1).replace('Z', " UTC")
}

/// The symbol of a verdict.
fn symbol(verdict: &dyn ToString) -> &'static str {
    match verdict.to_string().as_str() {
        "ok" => "✓",
        "notice" => "i",
        "warning" => "!",
        "unknown" => "?",
        _ => "✕",
    }
}
