//! The recommendations for one server: for each setting its value, the reason, the command, when it takes effect, and what it saves.

use std::cmp::Reverse;

use hugepage_kernel::{Bytes, PageSize, Pages};
use serde::Serialize;

use crate::advice::plan::rows;
use crate::assessment::page_tables::PageTables;
use crate::assessment::{Severity, Status};
use crate::model::{HugePages, Landing};

/// Where the setting belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Area {
    /// The server's configuration.
    Postgresql,
    /// A parameter of the running kernel.
    Kernel,
    /// A setting for the boot.
    Boot,
    /// A control group.
    Cgroup,
    /// Oracle's parameters.
    Oracle,
    /// Limits of the server's owner (limits.conf(5)).
    Limits,
}

shown_as_serialized!(Area);

/// When it takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Immediately.
    Now,
    /// At the next start of the server.
    #[serde(rename = "server restart")]
    ServerRestart,
    /// At the next boot.
    Reboot,
}

shown_as_serialized!(Effect);

/// One recommendation, with the names that JSON has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Recommendation {
    /// How grave the present value is.
    pub severity: Severity,
    /// Where the setting belongs.
    pub area: Area,
    /// The name of the setting, as in the file or command that sets it.
    pub setting: String,
    /// The value now; `None` if unknown.
    pub current: Option<String>,
    /// The value to set; `None` if the host cannot hold any sufficient value.
    pub recommended: Option<String>,
    /// The reason, one sentence with this host's numbers.
    pub reason: String,
    /// The complete command.
    pub command: Option<String>,
    /// When it takes effect.
    pub takes_effect: Effect,
    /// Memory that it frees.
    pub saving: Option<Bytes>,
    /// The name of the finding whose hint has this as a step; `None` for what no finding leads to.
    pub finding: Option<&'static str>,
}

impl Recommendation {
    /// Without values and a command, and taking effect now.
    pub fn new(severity: Severity, area: Area, setting: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            severity,
            area,
            setting: setting.into(),
            current: None,
            recommended: None,
            reason: reason.into(),
            command: None,
            takes_effect: Effect::Now,
            saving: None,
            finding: None,
        }
    }

    /// With whom it counts in its reason, if it sets a number of pages.
    pub fn counting(mut self, counted: &str) -> Self {
        let is_pool = matches!(self.area, Area::Kernel | Area::Boot) && self.setting.contains("hugepages");
        if is_pool && self.recommended.is_some() {
            self.reason = format!("{} ({counted}).", self.reason.trim_end_matches('.'));
        }
        self
    }
}

/// Whom a number of pages to set counts; as of [`Facts::others_lack`](crate::model::Facts::others_lack).
pub fn counted(others_lack: Option<Pages>) -> String {
    let who = if others_lack.is_none() { "this server beside the pages in use" } else { "all servers seen here" };
    format!("{who}; `hugepage-sidecar size` counts all of the host")
}

/// A size as PostgreSQL accepts it: in MB if it is a multiple of 1 MB, else in kB.
pub fn setting(size: Bytes) -> String {
    match size.0 {
        n if n.is_multiple_of(1 << 20) => format!("{}MB", n >> 20),
        n => format!("{}kB", n >> 10),
    }
}

/// One server on its host.
#[derive(Clone, Debug)]
pub struct AdviceContext {
    /// The assessment.
    pub status: Status,
    /// The page tables of its processes.
    pub page_tables: PageTables,
    /// Whether the server is in a container.
    pub is_in_container: bool,
}

/// All recommendations, the most severe first.
pub fn recommendations(context: &AdviceContext) -> Vec<Recommendation> {
    let steps = rows::of_findings(&context.status).into_iter();
    let steps = steps.map(|row| Recommendation { saving: row.saving.or_else(|| context.saving()), ..row });
    let mut all: Vec<_> = steps.chain(context.limit_of_container()).collect();
    // The sort is stable, so among equals the order above holds.
    all.sort_by_key(|recommendation| Reverse(recommendation.severity));
    all
}

impl AdviceContext {
    /// Page tables that huge pages would save now; `None` if the server has huge pages, or if unknown.
    fn saving(&self) -> Option<Bytes> {
        self.page_tables.of_shared_memory.filter(|_| self.status.facts.landing() != Landing::Hugetlb)
    }

    /// The limit that Kubernetes and engines set from outside. Silent where the server has its huge pages, and where a limit that is
    /// seen lets it have them.
    fn limit_of_container(&self) -> Option<Recommendation> {
        let facts = &self.status.facts;
        let (size, needed) = (facts.pool_state.huge_page_size?, self.status.needed?);
        let limits = facts.pool_state.limits.as_ref();
        let seen = limits.and_then(|limits| limits.fault.iter().map(|level| level.limit).min());
        let wanted = size.times(needed);
        let has_them = facts.landing() == Landing::Hugetlb && seen.is_none_or(|limit| limit >= wanted);
        if !self.is_in_container || has_them || facts.requested.huge_pages == HugePages::Off {
            return None;
        }
        let resource = format!("hugepages-{}i", size.kernel_parameter());
        let reason = format!(
            "In a container the limit {resource} has to hold all of shared memory, not only shared_buffers: {needed} pages of {size}."
        );
        (seen.is_none_or(|limit| limit < wanted)).then(|| Recommendation {
            current: seen.map(|limit| quantity(limit, size)),
            recommended: Some(quantity(wanted, size)),
            command: Some(format!("{resource}: {}", quantity(wanted, size))),
            takes_effect: Effect::ServerRestart,
            ..Recommendation::new(Severity::Notice, Area::Cgroup, resource.as_str(), reason)
        })
    }
}

/// What a limit allows, in whole pages, as Kubernetes accepts it.
fn quantity(limit: Bytes, size: PageSize) -> String {
    let whole = limit.0 / size.bytes().0 * size.bytes().0;
    if whole.is_multiple_of(1 << 20) { format!("{}Mi", whole >> 20) } else { format!("{}Ki", whole >> 10) }
}
