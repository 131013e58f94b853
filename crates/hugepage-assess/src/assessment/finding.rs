//! What was found about a server, each finding with its severity.

use hugepage_kernel::Pages;
use serde::{Deserialize, Serialize};

use crate::model::{Cause, Loss};

/// The severity of a finding, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// As asked, and a restart keeps it.
    Ok,
    /// Worth knowing; no action is urgent.
    Notice,
    /// Huge pages are lost, or the next start will lose them.
    Warning,
    /// The server is in danger.
    Critical,
}

shown_as_serialized!(Severity);

/// A condition that will take huge pages away or make a start fail, although nothing has happened yet. Each value is
/// one bit, so that shared memory holds a set of them in a byte.
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
    /// [`Finding::CrashLoses`].
    CrashLoses = 8,
    /// [`Finding::SharedLimit`].
    SharedLimit = 16,
}

impl Threat {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::CgroupLimit, Self::RestartFails, Self::RestartLoses, Self::CrashLoses, Self::SharedLimit];

    /// The finding that it is of.
    pub const fn finding(self) -> Finding {
        match self {
            Self::CgroupLimit => Finding::CgroupBelowSegment,
            Self::RestartFails => Finding::RestartFails,
            Self::RestartLoses => Finding::RestartLoses,
            Self::CrashLoses => Finding::CrashLoses,
            Self::SharedLimit => Finding::SharedLimit,
        }
    }

    /// Whether the next start would trigger it. One such threat may replace another.
    pub const fn is_of_restart(self) -> bool {
        matches!(self, Self::RestartFails | Self::RestartLoses)
    }
}

shown_as_serialized!(Threat);

/// One finding. Of findings with equal severity, the first in this list is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A fault-time cgroup limit is below a segment in huge pages, now or after the next start: SIGBUS, or wrong reads.
    CgroupBelowSegment,
    /// `huge_pages = on`, and the next start would fail.
    RestartFails,
    /// The last start lost something that is still lost.
    Regressed(Loss),
    /// In base pages, and why.
    BasePages(Cause),
    /// In huge pages now, in base pages after the next start.
    RestartLoses,
    /// Page tables take too much of the host's memory.
    PageTables,
    /// The pool has at least twice the pages that all servers need.
    PoolWasted {
        /// The pages that all servers need together.
        needed: Pages,
    },
    /// In transparent huge pages: nothing reserves them.
    TransparentHugePages,
    /// The kernel did not show where the segment landed.
    LandingUnknown,
    /// The outcome of the next start could not be determined.
    OutlookUnknown,
    /// In huge pages now, and not after a crash of one process, whatever a restart would get.
    CrashLoses,
    /// The NUMA nodes that the server may use have too few pages.
    NodeLimit,
    /// A fault-time cgroup limit is below what all that share it were promised, now or after the next start.
    SharedLimit,
    /// The host's memory and page tables are unknown: lxcfs shows a container's.
    HostMemoryUnknown,
    /// In huge pages now, and the next boot sets too small a pool, or none.
    BootLoses,
    /// A limit has refused huge pages to processes of the server's cgroup.
    LimitHit {
        /// The file that counts it.
        path: String,
        /// How often.
        count: u64,
    },
    /// As asked.
    AsRequested,
}

impl Finding {
    /// The names of all findings, in the order of this list. `AsRequested` is the absence of findings.
    pub const NAMES: [&'static str; 16] = [
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
        "crash_loses",
        "node_limit",
        "shared_limit",
        "host_memory_unknown",
        "boot_loses",
        "limit_hit",
    ];

    /// The name for monitoring, one of [`Finding::NAMES`]. A [`Threat`] has the same name.
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
            Self::CrashLoses => "crash_loses",
            Self::NodeLimit => "node_limit",
            Self::SharedLimit => "shared_limit",
            Self::HostMemoryUnknown => "host_memory_unknown",
            Self::BootLoses => "boot_loses",
            Self::LimitHit { .. } => "limit_hit",
            Self::AsRequested => "as_asked",
        }
    }
}
