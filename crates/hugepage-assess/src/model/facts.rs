//! What is known of one server and its host: the input of every assessment.

use hugepage_kernel::cgroups::cgroup::CgroupLimits;
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::{Bytes, PageSize, Pages};

use crate::model::{
    Asked, Cause, Clusterware, CrashRecovery, HugePages, Landing, LockLimit, Loss, NodePools, Pending, PoolFact,
    PoolState, Product, Segment,
};

/// All that an assessment needs; `None` for what could not be read.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The settings.
    pub asked: Asked,
    /// The running segment.
    pub segment: Option<Segment>,
    /// The page size of `pool`: that of the segment if it is in huge pages, else what `huge_page_size` asks for. `None`
    /// also where the kernel has no huge pages and so no default size.
    pub huge_page_size: Option<PageSize>,
    /// The pool of that size.
    pub pool: PoolFact,
    /// The host's memory.
    pub meminfo: Option<Meminfo>,
    /// cgroup limits on that size.
    pub limits: Option<CgroupLimits>,
    /// The pool by NUMA nodes; `None` where no node can matter: there is one, or the pool has no pages.
    pub nodes: Option<NodePools>,
    /// What the configuration on disk would ask for.
    pub pending: Pending,
    /// The percentage of memory that the host keeps for base pages.
    pub reserve_percent: u32,
    /// The permission for System V segments in huge pages that this server lacks; `None` where none is missing, or it
    /// could not be read.
    pub lock_limit: Option<LockLimit>,
    /// The pages of `pool` that other servers on this host still lack; `None` where other servers can't be seen.
    pub others_lack: Option<Pages>,
    /// Why the segment did not land where it was asked for, as seen at that moment; `None` if it was not recorded.
    pub cause_at_start: Option<Cause>,
    /// The pages that the server itself recorded as needed when it started, whatever size they have; `None` if unknown.
    pub needed_at_start: Option<Pages>,
    /// What the last start lost; `None` if nothing, or if it was not recorded.
    pub loss: Option<Loss>,
    /// The pages of `pool` that the server would keep of this segment beside a new one after a crash.
    pub kept_at_crash: KeptPages,
    /// Whether the server would recover after a crash.
    pub crash_recovery: CrashRecovery,
    /// Grid Infrastructure of an Oracle instance; `None` where there is none, and for PostgreSQL.
    pub clusterware: Option<Clusterware>,
    /// Whether `asked` is from files that have changed since the start, so that the server may have been started with others.
    pub asked_may_differ: bool,
    /// Whether a pool of another page size has pages for a server that asks for them, or may get some.
    pub others_may_serve: bool,
}

impl Facts {
    /// Where the segment landed.
    pub fn landing(&self) -> Landing {
        self.segment.as_ref().map_or(Landing::Unknown, |segment| segment.landing)
    }

    /// The pages of `self.pool` that the server certainly has: none of a segment that may grow, of which no process can see
    /// how much is touched by all.
    pub fn own_at_least(&self) -> Pages {
        match &self.segment {
            Some(segment) if segment.may_grow() => Pages(0),
            _ => self.own(),
        }
    }

    /// The pages of `self.pool` that the server has; at most, if its segment may grow.
    pub fn own(&self) -> Pages {
        match (&self.segment, self.huge_page_size) {
            (Some(segment), Some(page)) if segment.page_size == Some(page) => page.pages_to_hold(segment.in_huge_pages),
            _ => Pages(0),
        }
    }

    /// What the next start asks for; what the running server has asked for where that is unknown.
    pub const fn asked_next(&self) -> Asked {
        match &self.pending {
            Pending::Changed(demand, _) => demand.asked,
            Pending::Unchanged | Pending::Refused(_) | Pending::Unknown => self.asked,
        }
    }

    /// Whether the next start asks for huge pages, or may do so because its settings are unknown.
    pub fn may_ask_next(&self) -> bool {
        self.pending == Pending::Unknown || self.asked_next().huge_pages != HugePages::Off
    }

    /// The permission that the running server lacks, and that which its next start would lack if its settings have changed.
    pub fn lock_limits(&mut self) -> impl Iterator<Item = &mut Option<LockLimit>> {
        let pending = match &mut self.pending {
            Pending::Changed(_, ground) => Some(&mut ground.lock_limit),
            Pending::Unchanged | Pending::Refused(_) | Pending::Unknown => None,
        };
        std::iter::once(&mut self.lock_limit).chain(pending)
    }

    /// What a start with the running settings finds.
    pub fn ground(&self) -> PoolState {
        PoolState {
            huge_page_size: self.huge_page_size,
            pool: self.pool.clone(),
            limits: self.limits.clone(),
            nodes: self.nodes.clone(),
            lock_limit: self.lock_limit,
        }
    }

    /// The pages that the next start asks for and the server has not; zero where that is unknown. With
    /// `shared_memory_type = sysv` those that it asks for with `mmap`, which is what the advice says to set.
    pub fn lack(&self) -> Pages {
        let next = self.asked_next();
        let size = match &self.pending {
            Pending::Changed(demand, ground) if ground.huge_page_size == self.huge_page_size => demand.shared_memory,
            _ => Bytes(0),
        };
        let is_in_files = matches!(next.product, Product::Oracle { memory_target: true, .. });
        let wants = self.may_ask_next() && !is_in_files;
        let (Some(segment), Some(page), PoolFact::Known(_), true) =
            (&self.segment, self.huge_page_size, &self.pool, wants)
        else {
            return Pages(0);
        };
        page.pages_to_hold(segment.to_reserve.max(size)).saturating_sub(self.own())
    }

    /// The size of the running segment.
    pub fn segment_size(&self) -> Option<Bytes> {
        self.segment.as_ref().map(|segment| segment.size)
    }

    /// The page size of the running segment.
    pub fn page_size(&self) -> Option<PageSize> {
        self.segment.as_ref()?.page_size
    }
}

/// Pages that each crash of a process takes from the pool until the server stops: its io_uring rings lie in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptPages {
    /// If the rings begin at the start of a page.
    pub at_least: Pages,
    /// If they do not.
    pub at_most: Pages,
    /// The crashes whose rings are still open.
    pub crashes: u64,
}

impl KeptPages {
    /// What the open rings of earlier crashes keep, which the server gives back when it stops: at most this, and nothing
    /// if the segments of that time were in base pages.
    pub fn before(self) -> Pages {
        Pages(self.at_most.0.saturating_mul(self.crashes))
    }
}
