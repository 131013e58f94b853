//! The memory of a server's processes.

use hugepage_kernel::{Bytes, Mapping, PageSize, Rlimit};
use serde::{Deserialize, Serialize};

/// The memory of a server's processes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ObservedMemory {
    /// What they share; `None` if it may not be read.
    pub shared: Option<Vec<Mapping>>,
    /// The page tables of all processes.
    pub page_tables: PageTables,
    /// The memory that the server may lock.
    pub memlock: Option<Rlimit>,
    /// What the process with the most has resident of memory that may be in transparent huge pages.
    #[serde(default)]
    pub resident: Bytes,
    /// Its transparent huge pages; `None` if they were not looked for: on a host without any, and of Oracle.
    #[serde(default)]
    pub transparent: Option<TransparentPages>,
}

/// What tells transparent huge pages from base pages. The postmaster's part stands for the whole segment: a collapse makes it of all
/// ranges, and a session has none before it touches one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransparentPages {
    /// What the postmaster has mapped of the segment (`Rss` in its smaps).
    pub resident: Bytes,
    /// The part that it has mapped by whole huge pages (`ShmemPmdMapped`).
    pub pmd_mapped: Bytes,
    /// The most that a process of the server has resident of shared memory (`RssShmem`).
    pub most_resident: Bytes,
    /// What the host has of them (`ShmemHugePages`); `None` if unknown.
    pub of_host: Option<Bytes>,
    /// The size of one (`hpage_pmd_size`); `None` if the kernel does not tell.
    pub size: Option<PageSize>,
}

/// The sum over a server's processes. `None`: no process could be read, or this kernel does not show the values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageTables {
    /// How many processes could be read.
    pub processes: u64,
    /// The size of all their page tables.
    pub total: Option<Bytes>,
    /// The largest of them.
    pub max: Option<Bytes>,
    /// The smallest: the page tables of a process that hardly uses shared memory.
    pub min: Option<Bytes>,
    /// The lower bound of what huge pages would free.
    pub of_shared_memory: Option<Bytes>,
}
