//! The HTML report: one file that loads no other file and runs no script.
//!
//! The report shows the numbers of [`HostOutput`], which `status --format json` prints, and of the survey. The modules
//! here compute what it has besides; the templates render both. Templates escape all values (askama, by the extension
//! .html), because directories and process titles are not trusted.

mod instance_history;
mod page_tables;

use askama::Template;
use hugepage_assess::assessment::Severity;
use hugepage_assess::model::Landing;
use hugepage_host::Survey;
use hugepage_host::escape;
use hugepage_kernel::Bytes;
use instance_history::{InstanceHistory, recorded_at};
use page_tables::PageTablesOf;

use crate::history::stored::StoredHistory;
use crate::output::host_rows::HostOutput;

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

/// Renders the report. `output` must be that of `survey`, and `histories` those of its instances, each with notes on what could not be
/// read; `connections` is the number for which page tables are computed.
pub fn render(
    survey: &Survey,
    output: &HostOutput,
    connections: u64,
    histories: Vec<(Vec<StoredHistory>, Vec<String>)>,
) -> askama::Result<String> {
    let base = survey.host.base_page_size;
    let instances = || survey.instances.iter().zip(&output.instances);
    ReportPage {
        host: output,
        name: output.host_name.as_deref().unwrap_or("an unknown host"),
        version: env!("CARGO_PKG_VERSION"),
        in_huge_pages: survey.instances.iter().filter(|one| one.landed_in() == Landing::Hugetlb).count(),
        page_tables: instances().map(|(instance, row)| PageTablesOf::new(instance, row, base, connections)).collect(),
        histories: output
            .instances
            .iter()
            .zip(histories)
            .map(|(row, stored)| InstanceHistory::new(row, stored))
            .collect(),
    }
    .render()
    .map(|page| escape::lines(&page) + "\n")
}

/// A size with its unit.
fn size(bytes: &u64) -> String {
    Bytes(*bytes).to_string()
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
