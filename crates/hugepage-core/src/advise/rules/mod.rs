//! What to set, rule by rule: each is a function of the situation, and silent where all is well.

mod boot;
mod cgroup;
mod gigantic;
mod huge_pages;
mod kernel;
mod parallel;
mod pool;
mod server;

use std::cmp::Reverse;

pub use boot::SYSCTL_FILE;
pub use pool::setting as pool_setting;
pub use server::too_large;

use crate::advise::context::Situation;
use crate::advise::recommendation::Recommendation;
use crate::assess::Severity;
use crate::assess::page_tables::table;
use crate::model::Landing;
use crate::{Bytes, PageSize, Pages};

/// The shared memory that some shared_buffers come to; asks the server's own program.
pub type SizeOf<'a> = dyn FnMut(Bytes) -> Option<Bytes> + 'a;

type Rule = fn(&Situation, &mut SizeOf<'_>) -> Vec<Recommendation>;

/// All that is worth doing, the gravest first.
pub fn recommendations(situation: &Situation, size_of: &mut SizeOf<'_>) -> Vec<Recommendation> {
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
    let mut all: Vec<_> = RULES.iter().flat_map(|rule| rule(situation, size_of)).collect();
    // The sort is stable, so among equals the order above holds.
    all.sort_by_key(|recommendation| Reverse(recommendation.severity));
    all
}

/// What several rules ask.
impl Situation {
    fn segment(&self) -> Bytes {
        self.status.facts.segment_size().unwrap_or_default()
    }

    fn in_huge_pages(&self) -> bool {
        self.status.facts.landing() == Landing::Hugetlb
    }

    /// Whether it is the size that mappings get which ask for none.
    pub fn is_default(&self, size: PageSize) -> bool {
        let meminfo = self.status.facts.meminfo.as_ref();
        meminfo.and_then(|meminfo| meminfo.huge_page_size) == Some(size)
    }

    /// From a gigabyte of shared memory on, base pages where huge ones were asked for are a warning.
    fn severity_of_base_pages(&self) -> Severity {
        if self.segment() >= Bytes(1 << 30) { Severity::Warning } else { Severity::Notice }
    }

    /// Page tables that huge pages would save now; `None` if the server has them, or it can't be known.
    fn saving(&self) -> Option<Bytes> {
        self.server.page_tables.of_shared_memory.filter(|_| !self.in_huge_pages())
    }

    /// Page tables of all connections that the server allows, had each touched all of shared memory.
    fn tables_at_most(&self, size: PageSize) -> Bytes {
        Bytes(table(self.segment(), size).0.saturating_mul(self.server.max_connections))
    }

    /// The pages that the pool has for good.
    fn persistent(&self) -> Pages {
        self.status.share.map(|share| share.persistent).unwrap_or_default()
    }

    fn mem_total(&self) -> Option<Bytes> {
        self.status.facts.meminfo.as_ref()?.mem_total
    }
}
