//! Limits that the kernel checks when a process touches a page, not when it reserves one: a server starts, and is killed later.

use hugepage_kernel::cgroups::cgroup::CgroupLimit;
use hugepage_kernel::{Bytes, Pages};

use crate::assessment::{Finding, Outlook, Severity, Status};
use crate::model::{Landing, PoolState};

/// A limit that is too low.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excess {
    /// Whether only those who share the hugetlb cgroup exceed it together, and not the segment alone.
    pub is_shared: bool,
    /// The file that sets it.
    pub path: String,
    /// What it allows.
    pub limit: Bytes,
    /// What it must allow at least.
    pub need: Bytes,
    /// The segment, in whole huge pages.
    pub size: Bytes,
    /// Whether the running segment exceeds it; else that of the next start will.
    pub is_now: bool,
    /// `Critical`, unless the next start may miss huge pages anyway.
    pub severity: Severity,
}

impl Excess {
    /// What is found.
    pub const fn finding(&self) -> Finding {
        if self.is_shared { Finding::SharedLimit } else { Finding::CgroupBelowSegment }
    }
}

impl PoolState {
    /// The limits that are below what a server touches that has `own` pages now and will have `needed`, the most severe first.
    pub fn excesses(&self, needed: Pages, own: Pages) -> Vec<Excess> {
        let (Some(page), Some(limits)) = (self.huge_page_size, &self.limits) else { return Vec::new() };
        let (size, own) = (page.times(needed), page.times(own));
        let excess = |level: &CgroupLimit| {
            let (limit, need) = (level.limit, level.promised_with(own, size).unwrap_or(size).max(size));
            let (is_shared, path) = (limit >= size, level.path.clone());
            let excess = Excess { is_shared, path, limit, need, size, is_now: true, severity: Severity::Critical };
            (limit < need).then_some(excess)
        };
        let mut found: Vec<_> = limits.fault.iter().filter_map(excess).collect();
        found.sort_by_key(|excess| (excess.is_shared, excess.limit));
        found
    }
}

impl Status {
    /// The limits that the running segment exceeds, then those that the next start's will.
    pub fn excesses(&self) -> Vec<Excess> {
        let (facts, mut found) = (&self.facts, Vec::new());
        if let (Landing::Hugetlb, Some(needed)) = (facts.landing(), self.needed) {
            found = facts.pool_state.excesses(needed, self.own);
        }
        let severity = match self.outlook {
            Outlook::Hugetlb | Outlook::Mixed => Severity::Critical,
            Outlook::Unknown => Severity::Warning,
            Outlook::Base | Outlook::Fails => return found,
        };
        let (next, Some(needed)) = (facts.next_pool_state(), self.forecast.needed) else { return found };
        let own = if next.huge_page_size == facts.pool_state.huge_page_size { self.own } else { Pages(0) };
        for excess in next.excesses(needed, own) {
            if !found.iter().any(|known| known.path == excess.path && known.need >= excess.need) {
                found.push(Excess { is_now: false, severity: excess.severity.min(severity), ..excess });
            }
        }
        found
    }
}
