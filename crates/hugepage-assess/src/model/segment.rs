//! The shared memory of a running server: its segment, in which pages it landed and why, and what that start lost.

use std::fmt;
use std::time::SystemTime;

use hugepage_kernel::mapping::maps::Mapping;
use hugepage_kernel::mapping::smaps::Usage;
use hugepage_kernel::{Bytes, PageSize, Pages};
use humantime::format_rfc3339_seconds;
use serde::{Deserialize, Serialize};

/// The note on a server whose shared memory is not one [`Segment`].
pub const RESIZABLE: &str =
    "parts of shared memory may not be accessed, as in a server that can resize it, which is not supported";

/// The main shared memory segment, or an SGA of several, as the kernel maps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// The kernel's name of the mapping; that of the largest one if there are several.
    pub name: String,
    /// The memory of it.
    pub size: Bytes,
    /// What it takes of a pool: each mapping rounded up to whole huge pages.
    pub to_reserve: Bytes,
    /// The part in huge pages.
    pub in_huge_pages: Bytes,
    /// The size of its pages; for a mixed segment the size of the huge ones. `None` if the kernel does not show it.
    pub page_size: Option<PageSize>,
    /// What kind of pages it has.
    pub landing: Landing,
}

impl Segment {
    /// A segment of a single mapping.
    pub fn of_mapping(mapping: &Mapping, landing: Landing) -> Self {
        let size = mapping.memory();
        Self {
            name: mapping.name().to_owned(),
            size,
            to_reserve: size,
            in_huge_pages: if landing == Landing::Hugetlb { size } else { Bytes(0) },
            page_size: mapping.page_size,
            landing,
        }
    }

    /// The part that is not in huge pages.
    pub const fn in_base_pages(&self) -> Bytes {
        self.size.saturating_sub(self.in_huge_pages)
    }
}

/// Where a segment landed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Landing {
    /// In huge pages of a pool: reserved, locked in memory, and for the whole segment.
    Hugetlb,
    /// In base pages that the kernel has collapsed into transparent huge pages, as far as the segment is resident.
    Thp,
    /// Transparent huge pages for a part of the segment, base pages for the rest.
    #[serde(rename = "partial thp")]
    PartialThp,
    /// An SGA of several segments, some of them in huge pages of a pool and some not.
    Mixed,
    /// In base pages.
    Base,
    /// The kernel did not show it.
    #[serde(other)]
    Unknown,
}

impl Landing {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Hugetlb, Self::Thp, Self::PartialThp, Self::Mixed, Self::Base, Self::Unknown];

    /// Whether all is in huge pages of a pool; `None` if that is unknown.
    pub fn is_hugetlb(self) -> Option<bool> {
        (self != Self::Unknown).then_some(self == Self::Hugetlb)
    }

    /// Determines the landing from the mapping's page size. For base pages `usage` decides, where shmem may be transparent.
    pub fn of_mapping(mapping: &Mapping, base: PageSize, usage: Option<&Usage>, pmd_size: Option<PageSize>) -> Self {
        match mapping.page_size {
            None => Self::Unknown,
            Some(size) if size > base => Self::Hugetlb,
            Some(_) => match usage {
                Some(usage) if usage.pmd_mapped.0 > 0 => {
                    // The two ends of a mapping need not fill a whole huge page.
                    let ends = pmd_size.map_or(Bytes(1), |size| size.times(Pages(2)));
                    if usage.resident.saturating_sub(usage.pmd_mapped) < ends { Self::Thp } else { Self::PartialThp }
                }
                _ => Self::Base,
            },
        }
    }
}

shown_as_serialized!(Landing);

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

/// What a start lost against the one before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// When the server started.
    pub at: SystemTime,
    /// What it lost.
    pub lost: Lost,
}

impl Loss {
    /// When the server started: `2026-11-21 10:00:00 UTC`.
    pub fn at_utc(&self) -> String {
        format_rfc3339_seconds(self.at).to_string().replace('T', " ").replace('Z', " UTC")
    }
}

/// What was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lost {
    /// The segment is in worse pages than before.
    Pages {
        /// The pages before.
        was: PageKind,
        /// The pages now.
        is: PageKind,
    },
    /// Only the next start would lose these pages, so the loss can be prevented while the server runs.
    Outlook(PageKind),
}

impl Lost {
    /// Whether only the next start would lose the pages.
    pub const fn only_outlook(self) -> bool {
        matches!(self, Self::Outlook(_))
    }
}

impl fmt::Display for Lost {
    /// "was in huge pages of 2 MB, is in 4 kB pages".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pages { was, is } => write!(f, "was in {was}, is in {is}"),
            Self::Outlook(was) => write!(f, "would have kept {was} at a restart, and would lose them now"),
        }
    }
}

/// A kind of pages and their size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageKind {
    /// The kind.
    pub landing: Landing,
    /// The size; `None` if unknown.
    pub size: Option<PageSize>,
}

impl fmt::Display for PageKind {
    /// "huge pages of 2 MB", "4 kB pages", "transparent huge pages".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.size.map_or("unknown size".to_owned(), |size| size.to_string());
        match self.landing {
            Landing::Hugetlb => write!(f, "huge pages of {size}"),
            Landing::Mixed => f.write_str("huge pages only in part"),
            Landing::Thp => f.write_str("transparent huge pages"),
            Landing::PartialThp => f.write_str("partly transparent huge pages"),
            Landing::Base | Landing::Unknown => write!(f, "{size} pages"),
        }
    }
}
