//! Limits that the kernel checks when a process touches a page, not when it reserves one: a server starts, and is killed later.

use hugepage_kernel::Bytes;
use hugepage_kernel::cgroups::cgroup::CgroupLimits;
use hugepage_kernel::cgroups::memory_cgroup::MemoryLimitKind;

use crate::assessment::{Finding, Severity};
use crate::model::Cause;

/// Who exceeds a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExcessKind {
    /// The segment alone, in a hugetlb cgroup.
    Segment,
    /// The segment and what others were promised that share the hugetlb cgroup.
    Shared,
    /// The segment, private memory and what others have in huge pages, in a memory cgroup that counts those.
    Memory(MemoryLimitKind),
}

impl ExcessKind {
    /// The cause that a preflight names.
    pub const fn cause(self) -> Cause {
        match self {
            Self::Segment | Self::Shared => Cause::CgroupLimit,
            Self::Memory(_) => Cause::MemoryLimit,
        }
    }

    /// What is found.
    pub const fn finding(self) -> Finding {
        match self {
            Self::Segment => Finding::CgroupBelowSegment,
            Self::Shared => Finding::SharedLimit,
            Self::Memory(_) => Finding::MemoryLimit,
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
    /// What it must allow at least, as things are now.
    pub need: Bytes,
    /// What to set it to: `need`, and in a memory cgroup room for as much private memory again, at least
    /// [`ROOM_FOR_PRIVATE_MEMORY`], because that grows with sessions and their work.
    pub advised: Bytes,
    /// The segment, in whole huge pages.
    pub size: Bytes,
    /// Whether the running segment exceeds it; else that of the next start will.
    pub is_now: bool,
    /// `Critical`, unless the next start may miss huge pages anyway, or nothing but slowness follows.
    pub severity: Severity,
}

/// The least room for private memory to grow that is advised below a limit: some ten sessions.
pub const ROOM_FOR_PRIVATE_MEMORY: Bytes = Bytes(64 << 20);

/// The limits that are below what a server touches that has `own` now and will have `size`, the most severe first.
pub fn excesses(limits: &CgroupLimits, size: Bytes, own: Bytes) -> Vec<Excess> {
    let excess = |kind, path: &str, limit, need, room| Excess {
        kind,
        path: path.to_owned(),
        limit,
        need,
        advised: need.saturating_add(room),
        size,
        is_now: true,
        severity: Severity::Critical,
    };
    let mut found = Vec::new();
    for limit in &limits.fault {
        let all = limit.promised_with(own, size).unwrap_or(size).max(size);
        if limit.limit < all {
            let kind = if limit.limit < size { ExcessKind::Segment } else { ExcessKind::Shared };
            found.push(excess(kind, &limit.path, limit.limit, all, Bytes(0)));
        }
    }
    for limit in limits.memory.iter().filter(|limit| limit.is_below(own, size)) {
        let room = limit.private.unwrap_or_default().max(ROOM_FOR_PRIVATE_MEMORY);
        found.push(excess(ExcessKind::Memory(limit.kind), &limit.path, limit.limit, limit.need(own, size), room));
    }
    for excess in &mut found {
        if excess.kind == ExcessKind::Memory(MemoryLimitKind::High) {
            excess.severity = Severity::Warning;
        }
    }
    let order = |kind| match kind {
        ExcessKind::Segment => 0,
        ExcessKind::Shared => 1,
        ExcessKind::Memory(MemoryLimitKind::Max) => 2,
        ExcessKind::Memory(MemoryLimitKind::High) => 3,
    };
    found.sort_by_key(|excess| (order(excess.kind), excess.limit));
    found
}
