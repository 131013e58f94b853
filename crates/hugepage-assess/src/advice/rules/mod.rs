//! The recommendations for one server, a function for each rule; it returns nothing if nothing needs to change.

mod boot;
mod cgroup;
mod gigantic;
mod huge_pages;
mod kernel;
mod parallel;
mod plan;
mod pool;
mod server;

use std::cmp::Reverse;

pub use boot::SYSCTL_FILE;
pub use server::too_large;

use crate::advice::context::AdviceContext;
use crate::advice::recommendation::Recommendation;
use crate::assessment::Severity;
use crate::assessment::page_tables::tables;
use crate::model::Landing;
use hugepage_kernel::{Bytes, PageSize, Pages};

type Rule = fn(&AdviceContext) -> Vec<Recommendation>;

/// All recommendations, the gravest first.
pub fn recommendations(context: &AdviceContext) -> Vec<Recommendation> {
    const RULES: [Rule; 8] = [
        pool::rule,
        server::rule,
        huge_pages::rule,
        cgroup::rule,
        boot::rule,
        gigantic::rule,
        parallel::rule,
        kernel::rule,
    ];
    let found = RULES.iter().flat_map(|rule| rule(context)).collect();
    let mut all = plan::with_steps(context, found);
    // The sort is stable, so among equals the order above holds.
    all.sort_by_key(|recommendation| Reverse(recommendation.severity));
    all
}

/// Facts that several rules use.
impl AdviceContext {
    fn segment(&self) -> Bytes {
        self.status.facts.segment_size().unwrap_or_default()
    }

    fn in_huge_pages(&self) -> bool {
        self.status.facts.landing() == Landing::Hugetlb
    }

    /// The severity of base pages that were not asked for: a warning from 1 GB of shared memory on.
    fn severity_of_base_pages(&self) -> Severity {
        if self.segment() >= Bytes(1 << 30) { Severity::Warning } else { Severity::Notice }
    }

    /// Page tables that huge pages would save now; `None` if the server has huge pages, or if unknown.
    fn saving(&self) -> Option<Bytes> {
        self.server.page_tables.of_shared_memory.filter(|_| !self.in_huge_pages())
    }

    /// Page tables of max_connections backends that have each touched all of shared memory.
    fn tables_at_most(&self, size: PageSize) -> Bytes {
        tables(self.server.max_connections, self.segment(), size)
    }

    /// The pages of the pool without surplus pages.
    fn persistent(&self) -> Pages {
        self.status.share.map(|share| share.persistent).unwrap_or_default()
    }

    fn mem_total(&self) -> Option<Bytes> {
        self.status.facts.meminfo.as_ref()?.mem_total
    }
}
