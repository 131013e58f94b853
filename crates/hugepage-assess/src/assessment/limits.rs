//! Limits that the kernel checks when a process touches a page, not when it reserves one: a server starts, and is killed later.

use hugepage_kernel::Bytes;
use hugepage_kernel::cgroups::cgroup::CgroupLimit;

use crate::assessment::{Finding, Outlook, Severity, Start, Status};

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
        if self.is_shared {
            Finding::SharedLimit
        } else {
            Finding::CgroupBelowSegment
        }
    }
}

impl Start<'_> {
    /// The limits that are below what it touches, the most severe first.
    pub fn excesses(&self) -> Vec<Excess> {
        let found = self.pool_state;
        let (Some(page), Some(limits), Some(needed)) =
            (found.huge_page_size, &found.limits, self.needed())
        else {
            return Vec::new();
        };
        let (size, own) = (page.times(needed), page.times(self.own));
        let excess = |level: &CgroupLimit| {
            let (limit, need) = (
                level.limit,
                level.promised_with(own, size).unwrap_or(size).max(size),
            );
            let (is_shared, path) = (limit >= size, level.path.clone());
            let excess = Excess {
                is_shared,
                path,
                limit,
                need,
                size,
                is_now: true,
                severity: Severity::Critical,
            };
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
        if facts.is_in_huge_pages() {
            found = facts.start_again().excesses();
        }
        let severity = match (self.forecast.outlook, &self.forecast.danger) {
            (Outlook::Fails, Some(danger)) if danger.is_signal => Severity::Critical,
            (Outlook::Hugetlb | Outlook::Mixed, _) => Severity::Critical,
            (Outlook::Unknown, _) => Severity::Warning,
            (Outlook::Base | Outlook::Fails, _) => return found,
        };
        let next = facts.start_next();
        for excess in next.iter().flat_map(Start::excesses) {
            if !found
                .iter()
                .any(|known| known.path == excess.path && known.need >= excess.need)
            {
                found.push(Excess {
                    is_now: false,
                    severity: excess.severity.min(severity),
                    ..excess
                });
            }
        }
        found
    }
}
