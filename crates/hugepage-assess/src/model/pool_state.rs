//! The pool that a start finds, its shares on NUMA nodes, and what limits its use.

use hugepage_facts::Cause;
use hugepage_kernel::cgroups::cgroup::CgroupLimits;
use hugepage_kernel::mapping::memory_policy::MemoryPolicy;
use hugepage_kernel::memory::pool::{NodePool, Pool};
use hugepage_kernel::{Bytes, PageSize, Pages};

use crate::model::BaseLimit;

/// What a start finds: the pool of the page size that it asks for, and the limits on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolState {
    /// The page size; `None` if the kernel has no huge pages and so no default size.
    pub huge_page_size: Option<PageSize>,
    /// The pool of that size.
    pub pool: PoolFact,
    /// cgroup limits on that size.
    pub limits: Option<CgroupLimits>,
    /// The pool by NUMA nodes; `None` if no node can matter: there is one, or the pool has no pages for a server that may use all.
    pub nodes: Option<NodePools>,
    /// The permission for System V segments in huge pages that the server lacks; `None` if none is missing, or it is unknown.
    pub lock_limit: Option<LockLimit>,
    /// What limits the start where it gets base pages.
    pub base_limits: Vec<BaseLimit>,
}

impl PoolState {
    /// Whether all cgroup limits are visible.
    pub fn sees_limits(&self) -> bool {
        let limits = self.limits.as_ref();
        limits.is_some_and(|limits| !limits.hidden_levels)
    }

    /// Whether the server is known to be kept from a NUMA node.
    pub fn is_kept_from_nodes(&self) -> bool {
        self.nodes.as_ref().is_some_and(NodePools::is_restricted)
    }

    /// How many of `pages` that are spread over all NUMA nodes the server may use.
    pub fn on_nodes(&self, pages: Pages) -> Pages {
        self.nodes.as_ref().map_or(pages, |nodes| {
            Pages(pages.0.saturating_mul(nodes.usable().len() as u64) / nodes.pools.len() as u64)
        })
    }

    /// What the start finds where other instances of the user hold that much memory. Kernels that count memlock count
    /// all System V segments in huge pages of one user (`user_shm_lock` in mm/mlock.c).
    #[must_use]
    pub fn beside(mut self, held: Bytes) -> Self {
        if let Some(LockLimit::Memlock { others, .. }) = &mut self.lock_limit {
            *others = held;
        }
        self
    }
}

/// The pool that the segment is in, or would be in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolFact {
    /// The counters of the pool.
    Known(Pool),
    /// The kernel or CPU has no pages of the requested size; it has these.
    Unsupported(Vec<PageSize>),
    /// The pool could not be read; a note says why.
    Unknown,
}

impl PoolFact {
    /// The pool, if known.
    pub const fn known(&self) -> Option<&Pool> {
        match self {
            Self::Known(pool) => Some(pool),
            _ => None,
        }
    }
}

/// Why the kernel refuses System V segments in huge pages (`can_do_hugetlb_shm` in fs/hugetlbfs/inode.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockLimit {
    /// Segments larger than what may be locked (RLIMIT_MEMLOCK): kernels before 5.18, which add up those of one user.
    Memlock {
        /// The limit.
        limit: Bytes,
        /// What other instances of the user have.
        others: Bytes,
    },
    /// All segments: the process has neither CAP_IPC_LOCK nor the group of `vm.hugetlb_shm_group`.
    ShmGroup {
        /// The process's own group, to which the parameter could be set.
        gid: u32,
    },
    /// One of the two: the distribution's kernel may be of either kind.
    Either {
        /// As in `ShmGroup`.
        gid: u32,
        /// As in `Memlock`; `None` is unlimited.
        limit: Option<Bytes>,
    },
    /// Any start, also one in base pages: all segments together exceed `kernel.shmall` (`newseg` in ipc/shm.c), for certain.
    Shmall {
        /// What it allows.
        limit: Bytes,
        /// The segments of others.
        others: Bytes,
        /// The value that would suffice, in base pages.
        needed_pages: u64,
    },
    /// Any start, also one in base pages: `kernel.shmmni` allows no more segments. Only where that is certain.
    Shmmni {
        /// The largest number of segments.
        limit: u64,
    },
    /// Something that is not visible: the last start found enough pages and took none, or the groups of the owner are unknown.
    Unexplained,
}

impl LockLimit {
    /// Whether a segment of `size` is refused for certain.
    pub fn refuses(self, size: Bytes) -> bool {
        match self {
            Self::Memlock { limit, others } => limit < size.saturating_add(others),
            Self::ShmGroup { .. } => size > Bytes(0),
            Self::Either { limit, .. } => limit.is_some_and(|limit| limit < size),
            Self::Shmall { .. } | Self::Shmmni { .. } => true,
            Self::Unexplained => false,
        }
    }

    /// Whether the server does not start at all, whatever pages it asks for.
    pub const fn prevents_start(self) -> bool {
        matches!(self, Self::Shmall { .. } | Self::Shmmni { .. })
    }

    /// Whether a segment of `size` may be refused, which is not certain.
    pub fn may_refuse(self, size: Bytes) -> bool {
        matches!(self, Self::Either { .. } | Self::Unexplained) && !self.refuses(size)
    }

    /// The kernel parameter and the value that lift it; `None` if none does for certain.
    pub const fn sysctl(self) -> Option<(&'static str, u64)> {
        match self {
            Self::ShmGroup { gid } => Some(("vm.hugetlb_shm_group", gid as u64)),
            Self::Shmall { needed_pages, .. } => Some(("kernel.shmall", needed_pages)),
            Self::Shmmni { limit } => Some(("kernel.shmmni", limit.saturating_mul(2))),
            Self::Memlock { .. } | Self::Either { .. } | Self::Unexplained => None,
        }
    }

    /// The cause of the refusal.
    pub const fn cause(self) -> Cause {
        match self {
            Self::Memlock { .. } | Self::Either { .. } => Cause::MemlockLimit,
            Self::ShmGroup { .. } => Cause::ShmGroup,
            Self::Shmall { .. } | Self::Shmmni { .. } => Cause::ShmLimit,
            Self::Unexplained => Cause::Unknown,
        }
    }
}

/// A pool of a host with several NUMA nodes, by node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePools {
    /// The share of each node.
    pub pools: Vec<NodePool>,
    /// The nodes that the server's cpuset allows; `None` if unknown.
    pub allowed: Option<Vec<u32>>,
    /// Which of those its memory policy allows.
    pub policy: MemoryPolicy,
}

impl NodePools {
    /// The shares that the server may use, as far as that is known: without a known cpuset or policy those of all nodes.
    pub fn usable(&self) -> Vec<&NodePool> {
        let by_cpuset = |share: &&NodePool| {
            self.allowed
                .as_ref()
                .is_none_or(|nodes| nodes.contains(&share.node))
        };
        let allowed: Vec<_> = self.pools.iter().filter(by_cpuset).collect();
        let MemoryPolicy::Bind(bound) = &self.policy else {
            return allowed;
        };
        let both: Vec<_> = allowed
            .iter()
            .copied()
            .filter(|share| bound.contains(&share.node))
            .collect();
        // The kernel passes over a policy that has no allowed node (policy_mbind_nodemask in mm/hugetlb.c).
        if both.is_empty() { allowed } else { both }
    }

    /// Whether nodes may be forbidden that are not known to be.
    pub fn may_be_fewer(&self) -> bool {
        self.allowed.is_none() || self.policy == MemoryPolicy::Unknown
    }

    /// Whether the server is known to be kept from a node.
    pub fn is_restricted(&self) -> bool {
        self.usable().len() < self.pools.len()
    }
}
