//! What one server asked for and what it and its host have: the input of every assessment.

use std::fmt;

use crate::assess::{Cause, Landing, Pending};
use crate::history::Lost;
use crate::read::cgroup::CgroupLimits;
use crate::read::maps::Mapping;
use crate::read::meminfo::Meminfo;
use crate::read::pool::Pool;
use crate::{Bytes, PageSize, Pages};

/// PostgreSQL's setting `huge_pages`; Oracle's `use_large_pages` comes to the same three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HugePages {
    /// Base pages by choice; Oracle's FALSE.
    Off,
    /// Huge pages, or the server does not start; Oracle's ONLY and AUTO_ONLY.
    On,
    /// Huge pages if they can be had, else base pages without a word (the default); Oracle's TRUE and AUTO.
    Try,
}

impl fmt::Display for HugePages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Try => "try",
        })
    }
}

/// Whose server it is, with what only that product has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// One segment, in huge pages as a whole or not at all.
    PostgreSql,
    /// An SGA of several System V segments or files.
    Oracle {
        /// Whether `MEMORY_TARGET` is set: the SGA is files in /dev/shm then, which never have huge pages.
        memory_target: bool,
        /// Whether a part of the SGA may land in huge pages where the pool has not enough for all (11.2.0.3 and later).
        may_mix: bool,
    },
}

/// What the server's settings ask of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Whose settings they are.
    pub product: Product,
    /// `huge_pages`.
    pub huge_pages: HugePages,
    /// `huge_page_size`; `None` for 0, the kernel's default size.
    pub huge_page_size: Option<PageSize>,
    /// Whether `shared_memory_type` is `sysv`, for which PostgreSQL never asks for huge pages (sysv_shmem.c).
    pub sysv: bool,
    /// `shared_buffers`: the buffer pool alone. Of Oracle the SGA.
    pub shared_buffers: Bytes,
}

/// The main shared memory segment, or an SGA of several, as the kernel maps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The kernel's name of the mapping; of several the largest one's.
    pub name: String,
    /// All of it.
    pub size: Bytes,
    /// What it takes of a pool: each mapping rounded up to whole huge pages.
    pub to_reserve: Bytes,
    /// Of it, in huge pages.
    pub in_huge_pages: Bytes,
    /// The size of its pages; of a mixed one that of the huge ones. `None` where the kernel does not tell.
    pub page_size: Option<PageSize>,
    /// What kind of pages it has.
    pub landing: Landing,
}

impl Segment {
    /// One that is a single mapping.
    pub fn of(mapping: &Mapping, landing: Landing) -> Self {
        let size = mapping.size();
        Self {
            name: mapping.name().to_owned(),
            size,
            to_reserve: size,
            in_huge_pages: if landing == Landing::Hugetlb { size } else { Bytes(0) },
            page_size: mapping.page_size,
            landing,
        }
    }

    /// Of it, what is not in huge pages.
    pub const fn in_base_pages(&self) -> Bytes {
        self.size.saturating_sub(self.in_huge_pages)
    }
}

/// What is known of the pool that the segment is in, or would be in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolFact {
    /// Its counters.
    Known(Pool),
    /// The kernel or CPU has no pages of the size asked for; it has these.
    Unsupported(Vec<PageSize>),
    /// It could not be read; a note says why.
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
    /// Segments larger than what may be locked (setrlimit(2), `RLIMIT_MEMLOCK`): kernels before 5.18.
    Memlock(Bytes),
    /// All: the process has neither CAP_IPC_LOCK nor the group of `vm.hugetlb_shm_group`.
    ShmGroup {
        /// The process's own group, which it could be set to.
        gid: u32,
    },
}

impl LockLimit {
    /// Whether a segment of `size` is refused.
    pub fn refuses(self, size: Bytes) -> bool {
        match self {
            Self::Memlock(limit) => limit < size,
            Self::ShmGroup { .. } => size > Bytes(0),
        }
    }

    /// What was lacking.
    pub const fn cause(self) -> Cause {
        match self {
            Self::Memlock(_) => Cause::MemlockLimit,
            Self::ShmGroup { .. } => Cause::ShmGroup,
        }
    }
}

/// All that an assessment needs; `None` for what could not be read.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The settings.
    pub asked: Asked,
    /// The running segment.
    pub segment: Option<Segment>,
    /// The page size of `pool`: the segment's own in huge pages, else what `huge_page_size` comes to; `None` also where
    /// the kernel has no huge pages and so no default size.
    pub huge_page_size: Option<PageSize>,
    /// The pool of that size.
    pub pool: PoolFact,
    /// The host's memory.
    pub meminfo: Option<Meminfo>,
    /// cgroup limits on that size.
    pub limits: Option<CgroupLimits>,
    /// What the configuration on disk would ask for.
    pub pending: Pending,
    /// The hundredths of memory that the host keeps for base pages.
    pub reserve_percent: u32,
    /// What the kernel asks of a process for System V segments in huge pages and this server does not have; `None` where
    /// nothing is missing, or it could not be read.
    pub lock_limit: Option<LockLimit>,
    /// The pages of `pool` that other servers known on this host still lack.
    pub others_lack: Pages,
    /// Why the segment was not put where it was asked for, as seen at that moment; `None` if nobody looked.
    pub cause_at_start: Option<Cause>,
    /// What the last start lost; `None` if nothing, or if nobody looked.
    pub loss: Option<Loss>,
}

/// What a start lost against the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// When it started, for people: `2026-11-21 10:00:00 UTC`.
    pub at: String,
    /// What it was.
    pub lost: Lost,
}
