//! The judgement of a PostgreSQL in a manifest: what it needs, where it would land, and what is wrong.

use hugepage_assess::assessment::{Outlook, Severity};
use hugepage_assess::model::{HugePages, Requested};
use hugepage_kernel::{Bytes, Notes, PageSize};

use super::finding::{LintFinding, LintRule};
use super::judge::Judge;
use super::need::{AskServer, Need, need, need_of_initdb};
use super::postgres::{Postgres, USUAL_SIZE};

/// The judgement of one PostgreSQL.
#[derive(Debug)]
pub struct Judgement {
    /// The findings, the gravest first.
    pub findings: Vec<LintFinding>,
    /// The page size that the server asks for.
    pub page_size: PageSize,
    /// The shared memory that the server needs; `None` if its settings are unknown.
    pub need: Option<Need>,
    /// The limit of huge pages of that size, in bytes; `None` if the manifest has none.
    pub limit: Option<Bytes>,
    /// The outlook on a node with the pages of the limit.
    pub outlook: Outlook,
    /// The pages and memory that the settings ask for.
    pub requested: Requested,
    /// The parts of the manifest that were not understood.
    pub notes: Vec<String>,
}

impl Judgement {
    /// The gravest finding.
    pub fn verdict(&self) -> Severity {
        self.findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Ok)
    }

    /// Whether nothing grave was found, and something is unknown.
    pub fn is_unknown(&self) -> bool {
        self.verdict() < Severity::Warning && self.findings.iter().any(|finding| finding.rule == LintRule::Unknown)
    }
}

/// Judges one PostgreSQL. `texts`: the contents of all files.
pub fn judge(postgres: &Postgres, servers: &mut dyn AskServer, texts: &[String]) -> Judgement {
    let mut notes = Notes::default();
    let requested = postgres.requested_memory(&mut notes);
    let sizes = postgres.resources.page_sizes();
    let page_size = requested.huge_page_size.unwrap_or(USUAL_SIZE);
    let need = postgres.settings_unknown.is_none().then(|| need(servers, postgres, &requested, &mut notes));
    let mut judge = Judge { postgres, texts, requested, sizes, page_size, need: need.as_ref(), findings: Vec::new() };
    judge.refusals();
    let limit = judge.limit();
    let outlook = judge.outlook(limit.as_ref().and_then(|limit| limit.bytes));
    judge.landing(limit.as_ref(), outlook);
    judge.memory(outlook);
    if judge.requested.huge_pages != HugePages::Off
        && let Some(limit) = limit.as_ref().and_then(|limit| limit.bytes)
    {
        judge.initdb(limit, need_of_initdb(servers, postgres));
    }
    let mut findings = judge.findings;
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let limit = limit.and_then(|limit| limit.bytes);
    Judgement { findings, page_size, need, limit, outlook, requested, notes: notes.into_vec() }
}
