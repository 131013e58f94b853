//! The judgement of one PostgreSQL while it is made: what is known, and the findings so far. Where a start would land
//! is the core's judgement. The rules on settings belong to [`KnownJudge`], which there is only where they were understood.

use hugepage_assess::assessment::{Outlook, Severity};
use hugepage_assess::model::{PoolFact, PoolState, Requested};
use hugepage_kernel::cgroups::cgroup::CgroupLimits;
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::{Bytes, PageSize, Pages};

use super::edit::TextEdit;
use super::finding::{LintFinding, LintRule};
use super::need::{Need, NeedSource};
use super::postgres::{Postgres, Quantity};
use super::quantity;
use super::settings::KnownSettings;
use super::yaml::LocatedNode;

/// Judges one PostgreSQL by what is certain of any, and has the findings so far.
#[derive(Debug)]
pub struct Judge<'a> {
    pub postgres: &'a Postgres,
    pub texts: &'a [String],
    pub sizes: Vec<PageSize>,
    pub findings: Vec<LintFinding>,
}

/// Judges one PostgreSQL whose settings, page size and need are known.
#[derive(Debug)]
pub struct KnownJudge<'a, 'b> {
    pub judge: &'b mut Judge<'a>,
    pub settings: &'a KnownSettings,
    pub requested: Requested,
    pub page_size: PageSize,
    pub need: &'b Need,
}

impl Judge<'_> {
    pub fn find(
        &mut self,
        rule: LintRule,
        severity: Severity,
        place: Option<&LocatedNode>,
        message: String,
        hint: Option<String>,
    ) {
        let place = place.unwrap_or(&self.postgres.place).clone();
        self.findings.push(LintFinding { rule, severity, place, message, hint, edits: Vec::new() });
    }

    pub fn edit(&mut self, edits: Option<Vec<TextEdit>>) {
        if let (Some(finding), Some(edits)) = (self.findings.last_mut(), edits) {
            finding.edits = edits;
        }
    }

    pub fn text(&self, found: &LocatedNode) -> &str {
        self.texts.get(found.file).map(String::as_str).unwrap_or_default()
    }

    /// The limit of pages of this size; a request alone is meant as one.
    pub fn limit(&self, size: PageSize) -> Option<Quantity> {
        let name = quantity::resource(size);
        let resources = &self.postgres.resources;
        let found = resources.quantity("limits", &name).or_else(|| resources.quantity("requests", &name));
        found.filter(|found| found.bytes != Some(Bytes(0)))
    }
}

impl KnownJudge<'_, '_> {
    /// The outlook on a node whose pool has the pages of the limit: Kubernetes starts a pod on no other.
    pub fn outlook(&self, limit: Option<Bytes>) -> Outlook {
        let pages = self.page_size.pages_within(limit.unwrap_or_default());
        let pool = Pool {
            page_size: self.page_size,
            nr: pages,
            free: pages,
            resv: Some(Pages(0)),
            surplus: Some(Pages(0)),
            overcommit: Some(Pages(0)),
        };
        let pool_state = PoolState {
            huge_page_size: Some(self.page_size),
            pool: PoolFact::Known(pool),
            limits: Some(CgroupLimits::default()),
            nodes: None,
            lock_limit: None,
            ring_limits: None,
        };
        let outlook = |needed| Outlook::of_start(&self.requested, Some(needed), Pages(0), &pool_state);
        let (least, most) = self.need.pages(self.page_size);
        let (best, worst) = (outlook(least), outlook(most));
        match best == worst && (self.need.libraries.is_empty() || best != Outlook::Hugetlb) {
            true => best,
            false => Outlook::Unknown,
        }
    }

    /// `556 pages of 2 MB`, with the source.
    pub fn need_text(&self) -> String {
        let (least, most) = self.need.pages(self.page_size);
        let range = if least == most { least.to_string() } else { format!("{least} to {most}") };
        match &self.need.source {
            NeedSource::Server(major) => format!("{range} (postgres -C of version {major})"),
            NeedSource::Estimate(why) => format!("{range} (estimated, because {why})"),
        }
    }

    pub fn hint(&self) -> String {
        let set = format!("Set {} to", quantity::resource(self.page_size));
        match self.need.libraries.as_slice() {
            [] => format!("{set} {}.", self.wanted()),
            names => format!("{set} more than {}: the size that {} adds is unknown.", self.wanted(), names.join(", ")),
        }
    }

    pub fn wanted(&self) -> String {
        quantity::of_pages(self.page_size, self.need.pages(self.page_size).1)
    }
}
