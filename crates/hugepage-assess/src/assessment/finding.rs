//! What was found about a server, each finding with its severity.

use hugepage_facts::{Cause, Loss};
use hugepage_kernel::Pages;

hugepage_facts::words! {
    /// The severity of a finding, in ascending order.
    #[derive(PartialOrd, Ord)]
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
}

hugepage_facts::words! {
    /// A condition that will take huge pages away or make a start fail, although nothing has happened yet.
    pub enum Threat {
        /// [`Finding::CgroupBelowSegment`].
        CgroupLimit,
        /// [`Finding::RestartFails`].
        RestartFails,
        /// [`Finding::RestartLoses`].
        RestartLoses,
        /// [`Finding::CrashLoses`].
        CrashLoses,
        /// [`Finding::SharedLimit`].
        SharedLimit,
    }
}

impl Severity {
    /// `Warning` if it is serious, else `Notice`.
    pub(super) const fn warning_if(is_serious: bool) -> Self {
        if is_serious {
            Self::Warning
        } else {
            Self::Notice
        }
    }
}

impl Threat {
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

/// The findings, each with its name for monitoring, which a [`Threat`] has too.
macro_rules! findings {
    ($(#[$about:meta])+ pub enum $all:ident {
        $($(#[$of:meta])+ $finding:ident $(($value:ty))? $({ $($field:tt)+ })? = $name:literal,)+
    }) => {
        $(#[$about])+
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $all {
            $($(#[$of])+ $finding $(($value))? $({ $($field)+ })?,)+
            /// As asked.
            AsRequested,
        }

        impl $all {
            /// The names of all findings, in the order of this list. `AsRequested` is the absence of findings.
            pub const NAMES: [&'static str; [$($name),+].len()] = [$($name),+];

            /// The name for monitoring, one of [`Finding::NAMES`]. A [`Threat`] has the same name.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$finding { .. } => $name,)+
                    Self::AsRequested => "as_asked",
                }
            }
        }
    };
}

findings! {
    /// One finding. Of findings with equal severity, the first in this list is reported.
    pub enum Finding {
        /// A fault-time cgroup limit is below a segment in huge pages, now or after the next start: SIGBUS, or wrong reads.
        CgroupBelowSegment = "cgroup_limit",
        /// `huge_pages = on`, and the next start would fail.
        RestartFails = "restart_fails",
        /// The last start lost something that is still lost.
        Regressed(Loss) = "regressed",
        /// In base pages, and why.
        BasePages(Cause) = "base_pages",
        /// In huge pages now, in base pages after the next start.
        RestartLoses = "restart_loses",
        /// Page tables take too much of the host's memory.
        PageTables = "page_tables",
        /// The pool has at least twice the pages that all servers need.
        PoolWasted {
            /// The pages that all servers need together.
            needed: Pages,
        } = "pool_wasted",
        /// In transparent huge pages: nothing reserves them.
        TransparentHugePages = "transparent_huge_pages",
        /// The kernel did not show where the segment landed.
        LandingUnknown = "landing_unknown",
        /// The outcome of the next start could not be determined.
        OutlookUnknown = "outlook_unknown",
        /// In huge pages now, and not after a crash of one process, whatever a restart would get.
        CrashLoses = "crash_loses",
        /// The NUMA nodes that the server may use have too few pages.
        NodeLimit = "node_limit",
        /// A fault-time cgroup limit is below what all that share it were promised, now or after the next start.
        SharedLimit = "shared_limit",
        /// The host's memory and page tables are unknown: lxcfs shows a container's.
        HostMemoryUnknown = "host_memory_unknown",
        /// In huge pages now, and the next boot sets too small a pool, or none.
        BootLoses = "boot_loses",
        /// In huge pages now, and what the next boot gives is unknown.
        BootUnknown = "boot_unknown",
        /// A limit has refused huge pages to processes of the server's cgroup.
        LimitHit {
            /// The file that counts it.
            path: String,
            /// How often.
            count: u64,
        } = "limit_hit",
    }
}
