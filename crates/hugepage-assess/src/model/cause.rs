//! Why a segment is not in huge pages.

use serde::{Deserialize, Serialize};

/// Why shared memory is not as asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// `huge_pages = off`.
    Disabled,
    /// `MEMORY_TARGET` (Oracle), whose SGA is files in /dev/shm.
    MemoryTarget,
    /// `shared_memory_type = sysv`, for which PostgreSQL never asks for huge pages.
    SysvSharedMemory,
    /// The kernel or CPU has no pages of `huge_page_size`.
    PageSizeUnsupported,
    /// The pool has no pages at all.
    PoolEmpty,
    /// The pool has pages, but fewer than needed.
    PoolTooSmall,
    /// The pool has enough pages, but other processes use them.
    PoolTaken,
    /// The pool has enough pages, but a cgroup may not reserve them.
    CgroupLimit,
    /// The pool has enough pages, but the server may not lock that much memory.
    MemlockLimit,
    /// The pool has enough pages, but the kernel reserves them to a group that the server is not in.
    ShmGroup,
    /// The kernel allows no more System V shared memory, in whatever pages: `kernel.shmall` or `kernel.shmmni`.
    ShmLimit,
    /// The pool has pages enough, but not on the NUMA nodes that the server may use.
    NodeLimit,
    /// No visible fact explains it, or no longer does.
    #[serde(other)]
    Unknown,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Disabled,
        Self::MemoryTarget,
        Self::SysvSharedMemory,
        Self::PageSizeUnsupported,
        Self::PoolEmpty,
        Self::PoolTooSmall,
        Self::PoolTaken,
        Self::CgroupLimit,
        Self::MemlockLimit,
        Self::ShmGroup,
        Self::ShmLimit,
        Self::NodeLimit,
        Self::Unknown,
    ];
}

shown_as_serialized!(Cause);
