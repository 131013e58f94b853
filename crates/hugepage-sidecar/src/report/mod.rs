//! The page of `report`: one file of HTML that loads nothing and runs nothing.
//!
//! Its figures are those of [`HostOutput`], which is what `status --format json` prints, and of the survey behind it. The
//! modules here turn them into places in a picture, and the templates put both into words and shapes. Templates escape
//! whatever they are given (askama, by their ending .html), for directories and titles of processes may be anything.

mod memory_chart;
mod page_tables;
mod scale;
mod stored_history;
mod timeline;

use std::path::Path;

use askama::Template;
use hugepage_core::Bytes;
use hugepage_core::collect::instances::Survey;
use hugepage_core::read::Root;

use crate::output::rows::HostOutput;
use memory_chart::MemoryChart;
use page_tables::PageTableChart;
use timeline::InstanceHistory;

/// How far the page looks.
#[derive(Clone, Copy, Debug)]
pub struct ReportScope<'a> {
    /// The connections for which page tables are computed.
    pub connections: u64,
    /// Where `watch` keeps histories.
    pub state_directory: &'a Path,
}

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    host: &'a HostOutput,
    name: &'a str,
    version: &'static str,
    in_huge_pages: usize,
    memory: Option<MemoryChart>,
    page_tables: Vec<PageTableChart>,
    histories: Vec<InstanceHistory>,
}

/// The page; `output` is made of `survey`.
pub fn render(root: &Root, survey: &Survey, output: &HostOutput, scope: &ReportScope<'_>) -> askama::Result<String> {
    let base = root.base_page_size().ok();
    let instances = || survey.instances.iter().zip(&output.instances);
    Page {
        host: output,
        name: output.host_name.as_deref().unwrap_or("an unknown host"),
        version: env!("CARGO_PKG_VERSION"),
        in_huge_pages: output.instances.iter().filter(|row| row.landed == "all").count(),
        memory: MemoryChart::new(survey, output),
        page_tables: instances()
            .map(|(instance, row)| PageTableChart::new(instance, row, base, scope.connections))
            .collect(),
        histories: instances()
            .map(|(instance, row)| InstanceHistory::new(root, survey, instance, row, scope.state_directory))
            .collect(),
    }
    .render()
    .map(|page| page + "\n")
}

/// Sizes for people.
fn size(bytes: &u64) -> String {
    Bytes(*bytes).to_string()
}

/// A moment for people, of one in RFC 3339.
fn moment(at: &str) -> String {
    at.replacen('T', " ", 1).replace('Z', " UTC")
}

/// The same without its seconds.
fn day_and_minute(at: &str) -> String {
    moment(at).chars().take("2026-11-21 10:00".len()).collect()
}

/// What a verdict looks like beside its word.
fn symbol(verdict: &str) -> &'static str {
    match verdict {
        "ok" => "✓",
        "notice" => "i",
        "warning" => "!",
        _ => "✕",
    }
}
