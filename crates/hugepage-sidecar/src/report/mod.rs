//! The page of `report`: one file of HTML that loads nothing and runs nothing.
//!
//! Its figures are those of [`HostOut`], which is what `status --format json` prints, and of the survey behind it. The
//! modules here turn them into places in a picture, and the templates put both into words and shapes. Templates escape
//! whatever they are given (askama, by their ending .html), for directories and titles of processes may be anything.

mod history;
mod memory;
mod page_tables;
mod scale;
mod timeline;

use std::path::Path;

use askama::Template;
use hugepage_core::Bytes;
use hugepage_core::collect::instances::Survey;
use hugepage_core::read::Root;

use crate::output::rows::HostOut;
use memory::Memory;
use page_tables::Cost;
use timeline::Past;

/// How far the page looks.
#[derive(Clone, Copy, Debug)]
pub struct Extent<'a> {
    /// The connections for which page tables are worked out.
    pub connections: u64,
    /// Where `watch` keeps histories.
    pub state_directory: &'a Path,
}

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    host: &'a HostOut,
    name: &'a str,
    version: &'static str,
    in_huge_pages: usize,
    memory: Option<Memory>,
    costs: Vec<Cost>,
    pasts: Vec<Past>,
}

/// The page; `out` is made of `survey`.
pub fn page(root: &Root, survey: &Survey, out: &HostOut, extent: &Extent<'_>) -> askama::Result<String> {
    let base = root.base_page_size().ok();
    let instances = || survey.instances.iter().zip(&out.instances);
    Page {
        host: out,
        name: out.host_name.as_deref().unwrap_or("an unknown host"),
        version: env!("CARGO_PKG_VERSION"),
        in_huge_pages: out.instances.iter().filter(|row| row.counted && row.landed == "all").count(),
        memory: Memory::of(survey, out),
        costs: instances().map(|(instance, row)| Cost::of(instance, row, base, extent.connections)).collect(),
        pasts: instances().map(|(instance, row)| Past::of(root, survey, instance, row, extent)).collect(),
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
fn sign(verdict: &str) -> &'static str {
    match verdict {
        "ok" => "✓",
        "notice" => "i",
        "warning" => "!",
        _ => "✕",
    }
}
