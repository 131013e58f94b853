//! What is worth saying of a server, each with how grave it is.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Pages;
use crate::model::{Cause, Loss};

/// How grave a finding is; the order is the order of gravity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// As asked, and a restart keeps it.
    Ok,
    /// Worth knowing, nothing to hurry for.
    Notice,
    /// Something is lost, or will be.
    Warning,
    /// The server is in danger.
    Critical,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Critical => "critical",
        })
    }
}

/// What would take huge pages away, or the server down, though nothing has happened yet. Each is a bit of its own, so
/// that shared memory holds a set of them in a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Threat {
    /// [`Finding::CgroupBelowSegment`].
    CgroupLimit = 1,
    /// [`Finding::RestartFails`].
    RestartFails = 2,
    /// [`Finding::RestartLoses`].
    RestartLoses = 4,
    /// [`Finding::SharedLimit`].
    SharedLimit = 8,
    /// [`Finding::MemoryLimit`].
    MemoryLimit = 16,
}

impl Threat {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::CgroupLimit, Self::RestartFails, Self::RestartLoses, Self::SharedLimit, Self::MemoryLimit];

    /// Whether the next start would carry it out; one such threat may take the place of another.
    pub const fn is_of_restart(self) -> bool {
        matches!(self, Self::RestartFails | Self::RestartLoses)
    }
}

impl fmt::Display for Threat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CgroupLimit => "cgroup_limit",
            Self::RestartFails => "restart_fails",
            Self::RestartLoses => "restart_loses",
            Self::SharedLimit => "shared_limit",
            Self::MemoryLimit => "memory_limit",
        })
    }
}

/// One finding. Among equals the first of this list speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A fault-time cgroup limit is below a segment that is in huge pages, now or after the next start: SIGBUS, or reads that look like corruption.
    CgroupBelowSegment,
    /// `huge_pages = on`, and the next start would fail.
    RestartFails,
    /// The last start lost something that is still lost.
    Regressed(Loss),
    /// Base pages, and why.
    BasePages(Cause),
    /// In huge pages now, in base pages after the next start.
    RestartLoses,
    /// Page tables take too much of the host's memory.
    PageTables,
    /// The pool has at least twice the pages that anybody needs.
    PoolWasted {
        /// What everybody together needs.
        needed: Pages,
    },
    /// In transparent huge pages: nothing reserves them.
    TransparentHugePages,
    /// The kernel did not tell where the segment landed.
    LandingUnknown,
    /// What the next start would get can't be known.
    OutlookUnknown,
    /// The NUMA nodes that the server may use have too few pages.
    NodeLimit,
    /// A memory cgroup that counts huge pages allows less than the segment and private memory, now or after the next
    /// start.
    MemoryLimit,
    /// A fault-time cgroup limit is below what all that share it were promised, now or after the next start.
    SharedLimit,
    /// As asked.
    AsAsked,
}

impl Finding {
    /// The names of all that can be found, in the order of this list; `AsAsked` is the absence of them.
    pub const NAMES: [&'static str; 13] = [
        "cgroup_limit",
        "restart_fails",
        "regressed",
        "base_pages",
        "restart_loses",
        "page_tables",
        "pool_wasted",
        "transparent_huge_pages",
        "landing_unknown",
        "outlook_unknown",
        "node_limit",
        "memory_limit",
        "shared_limit",
    ];

    /// Its name, one of [`Finding::NAMES`], for monitoring; those of a [`Threat`] are the same.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::CgroupBelowSegment => "cgroup_limit",
            Self::RestartFails => "restart_fails",
            Self::Regressed(_) => "regressed",
            Self::BasePages(_) => "base_pages",
            Self::RestartLoses => "restart_loses",
            Self::PageTables => "page_tables",
            Self::PoolWasted { .. } => "pool_wasted",
            Self::TransparentHugePages => "transparent_huge_pages",
            Self::LandingUnknown => "landing_unknown",
            Self::OutlookUnknown => "outlook_unknown",
            Self::NodeLimit => "node_limit",
            Self::MemoryLimit => "memory_limit",
            Self::SharedLimit => "shared_limit",
            Self::AsAsked => "as_asked",
        }
    }
}
