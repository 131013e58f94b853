//! The judgement of a PostgreSQL in a manifest: what it needs, where it would land, and what is wrong.

use hugepage_assess::assessment::{Outlook, Severity};
use hugepage_assess::model::{HugePages, Requested};
use hugepage_kernel::{Bytes, Notes, PageSize};

use super::finding::{LintFinding, LintRule};
use super::judge::{Judge, KnownJudge};
use super::need::{AskServer, Need, need};
use super::postgres::Postgres;
use super::quantity;
use super::settings::{KnownSettings, NotUnderstood, not_understood};

/// The judgement of one PostgreSQL.
#[derive(Debug)]
pub struct Judgement {
    /// The findings, the gravest first.
    pub findings: Vec<LintFinding>,
    /// The server's pages and memory; `None` if they are unknown.
    pub known: Option<KnownLanding>,
    /// The parts of the manifest that need an explanation.
    pub notes: Vec<String>,
}

/// The pages and memory of a server whose settings were understood.
#[derive(Debug)]
pub struct KnownLanding {
    /// The page size that the server asks for.
    pub page_size: PageSize,
    /// The shared memory that the server needs.
    pub need: Need,
    /// The limit of huge pages of that size, in bytes; `None` if the manifest has none.
    pub limit: Option<Bytes>,
    /// The outlook on a node with the pages of the limit.
    pub outlook: Outlook,
    /// The pages and memory that the settings ask for.
    pub requested: Requested,
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
    let sizes = postgres.resources.page_sizes();
    let mut judge = Judge { postgres, texts, sizes, findings: Vec::new() };
    judge.refusals();
    judge.names();
    let known = known_landing(&mut judge, servers, &mut notes);
    match &known {
        Ok(known) => {
            if let Some(limit) = judge
                .limit(known.page_size)
                .filter(|_| postgres.resources.is_of_pod(&quantity::resource(known.page_size)))
            {
                notes.add(format!("the limit of {} is the pod's, which holds since Kubernetes 1.34", limit.text));
            }
        }
        Err(NotUnderstood(why)) => {
            let message = format!("The huge pages that this server needs are unknown: {why}.");
            judge.find(LintRule::Unknown, Severity::Notice, None, message, None);
            judge.initdb_of_unknown();
            // What is certain needs no change of what is not.
            judge.findings.iter_mut().for_each(|finding| finding.edits.clear());
        }
    }
    let mut findings = judge.findings;
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Judgement { findings, known: known.ok(), notes: notes.into_vec() }
}

/// Judges where shared memory lands, if everything that decides it was understood.
fn known_landing(
    judge: &mut Judge<'_>,
    servers: &mut dyn AskServer,
    notes: &mut Notes,
) -> Result<KnownLanding, NotUnderstood> {
    let postgres = judge.postgres;
    let settings = postgres.settings.as_ref().map_err(Clone::clone)?;
    let requested = settings.requested_memory(notes);
    let page_size = page_size(postgres, settings, &requested, &judge.sizes)?;
    let need = need(servers, settings, &requested, notes)?;
    let limit = judge.limit(page_size);
    if let Some(odd) = limit.as_ref().filter(|limit| limit.bytes.is_none()) {
        return not_understood(format!("{} is not a quantity", odd.text));
    }
    let bytes = limit.as_ref().and_then(|limit| limit.bytes);
    let mut known = KnownJudge { judge, settings, requested, page_size, need: &need };
    let outlook = known.outlook(bytes);
    known.landing(limit.as_ref(), outlook);
    known.memory(outlook);
    known.initdb();
    Ok(KnownLanding { page_size, need, limit: bytes, outlook, requested })
}

/// The page size that the server asks for.
fn page_size(
    postgres: &Postgres,
    settings: &KnownSettings,
    requested: &Requested,
    sizes: &[PageSize],
) -> Result<PageSize, NotUnderstood> {
    match (requested.huge_page_size, &postgres.default_page_size) {
        (Some(size), _) if settings.has_setting("huge_page_size") => Ok(size),
        (_, Ok(default)) => Ok(*default),
        // Base pages are the same on every node.
        (_, Err(_)) if requested.huge_pages == HugePages::Off => Ok(super::node::USUAL_SIZE),
        (_, Err(NotUnderstood(why))) => not_understood(match sizes.first() {
            Some(size) if settings.has_setting("huge_page_size") => {
                format!("{why}, and huge_page_size is 0. Set huge_page_size to {}", size.setting())
            }
            _ => format!("{why}, and huge_page_size is 0"),
        }),
    }
}
