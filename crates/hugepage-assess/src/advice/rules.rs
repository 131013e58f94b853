//! The recommendations for one server: the steps of its findings, and the limit of its container.

use std::cmp::Reverse;

use hugepage_kernel::{Bytes, PageSize};

use crate::advice::plan::rows;
use crate::advice::recommendation::{Area, Effect, Recommendation};
use crate::assessment::page_tables::PageTables;
use crate::assessment::{Severity, Status};
use crate::model::{HugePages, Landing};

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
    fn in_huge_pages(&self) -> bool {
        self.status.facts.landing() == Landing::Hugetlb
    }

    /// Page tables that huge pages would save now; `None` if the server has huge pages, or if unknown.
    fn saving(&self) -> Option<Bytes> {
        self.page_tables.of_shared_memory.filter(|_| !self.in_huge_pages())
    }

    /// The limit that Kubernetes and engines set from outside. Silent where the server has its huge pages, and where a limit that is
    /// seen lets it have them.
    fn limit_of_container(&self) -> Option<Recommendation> {
        let facts = &self.status.facts;
        let (size, needed) = (facts.pool_state.huge_page_size?, self.status.needed?);
        let limits = facts.pool_state.limits.as_ref();
        let seen = limits.and_then(|limits| limits.fault.iter().map(|level| level.limit).min());
        let wanted = size.times(needed);
        let has_them = self.in_huge_pages() && seen.is_none_or(|limit| limit >= wanted);
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
