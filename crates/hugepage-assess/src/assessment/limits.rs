//! Limits that the kernel checks when a process touches a page, not when it reserves one: a server starts, and is killed later.

use hugepage_kernel::Bytes;
use hugepage_kernel::cgroups::cgroup::CgroupLimits;

use crate::assessment::{Finding, Severity};

/// Who exceeds a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExcessKind {
    /// The segment alone, in a hugetlb cgroup.
    Segment,
    /// The segment and what others were promised that share the hugetlb cgroup.
    Shared,
}

impl ExcessKind {
    /// What is found.
    pub const fn finding(self) -> Finding {
        match self {
            Self::Segment => Finding::CgroupBelowSegment,
            Self::Shared => Finding::SharedLimit,
        }
    }
}

/// A limit that is too low.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excess {
    /// Who exceeds it.
    pub kind: ExcessKind,
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

/// The limits that are below what a server touches that has `own` now and will have `size`, the most severe first.
pub fn excesses(limits: &CgroupLimits, size: Bytes, own: Bytes) -> Vec<Excess> {
    let mut found = Vec::new();
    for limit in &limits.fault {
        let need = limit.promised_with(own, size).unwrap_or(size).max(size);
        if limit.limit < need {
            let kind = if limit.limit < size { ExcessKind::Segment } else { ExcessKind::Shared };
            let (path, limit) = (limit.path.clone(), limit.limit);
            found.push(Excess { kind, path, limit, need, size, is_now: true, severity: Severity::Critical });
        }
    }
    found.sort_by_key(|excess| (excess.kind, excess.limit));
    found
}
