//! The shared memory of a running server: its segment, in which pages it landed and why, and what that start lost.

use std::fmt;
use std::time::SystemTime;

use hugepage_kernel::mapping::maps::Mapping;
use hugepage_kernel::{Bytes, PageSize, Pages};
use humantime::format_rfc3339_seconds;
use serde::{Deserialize, Serialize};

/// The note on a server whose shared memory is not one [`Segment`].
pub const RESIZABLE: &str = "parts of shared memory may not be accessed, as in a server that can resize it, which is not supported";

/// The main shared memory segment, or an SGA of several, as the kernel maps it.
#[derive(Clone, Debug, PartialEq, Eq)]
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
            in_huge_pages: if landing == Landing::Hugetlb {
                size
            } else {
                Bytes(0)
            },
            page_size: mapping.page_size,
            landing,
        }
    }

    /// The part that is not in huge pages.
    pub const fn in_base_pages(&self) -> Bytes {
        self.size.saturating_sub(self.in_huge_pages)
    }
}

words! {
    /// Where a segment landed.
    #[derive(Default)]
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
        #[default]
        #[serde(other)]
        Unknown,
    }
}

impl Landing {
    /// Whether all is in huge pages of a pool; `None` if that is unknown.
    pub fn is_hugetlb(self) -> Option<bool> {
        (self != Self::Unknown).then_some(self == Self::Hugetlb)
    }

    /// Determines the landing from the mapping's page size. `may_be_thp`: whether the host has shared memory in transparent huge
    /// pages, so that `seen` decides on base pages.
    pub fn of_mapping(
        mapping: &Mapping,
        base: PageSize,
        may_be_thp: bool,
        seen: Option<&TransparentPages>,
    ) -> Self {
        match mapping.page_size {
            None => Self::Unknown,
            Some(size) if size > base => Self::Hugetlb,
            Some(_) if may_be_thp => {
                seen.map_or(Self::Unknown, |seen| seen.landing(mapping.size()))
            }
            Some(_) => Self::Base,
        }
    }

    /// Whether it has transparent huge pages.
    pub const fn is_transparent(self) -> bool {
        matches!(self, Self::Thp | Self::PartialThp)
    }
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

impl TransparentPages {
    /// The pages of a segment of `size`, which is not in huge pages of a pool.
    pub fn landing(&self, size: Bytes) -> Landing {
        if self.pmd_mapped == Bytes(0) {
            return Landing::Base;
        }
        // The two ends of a mapping need not fill a whole huge page.
        let ends = self.size.map_or(Bytes(1), |size| size.times(Pages(2)));
        let is_whole = self.resident.saturating_sub(self.pmd_mapped) < ends;
        // After a collapse that was stopped the postmaster may have touched nothing of the rest.
        let touched = self.most_resident.min(size);
        let has_rest = self
            .of_host
            .is_some_and(|of_host| of_host < touched.percent(90));
        if is_whole && !has_rest {
            Landing::Thp
        } else {
            Landing::PartialThp
        }
    }
}

words! {
    /// Why shared memory is not as asked.
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
}

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
        format_rfc3339_seconds(self.at)
            .to_string()
            .replace('T', " ")
            .replace('Z', " UTC")
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
            Self::Outlook(was) => write!(
                f,
                "would have kept {was} at a restart, and would lose them now"
            ),
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
        let size = self
            .size
            .map_or("unknown size".to_owned(), |size| size.to_string());
        match self.landing {
            Landing::Hugetlb => write!(f, "huge pages of {size}"),
            Landing::Mixed => f.write_str("huge pages only in part"),
            Landing::Thp => f.write_str("transparent huge pages"),
            Landing::PartialThp => f.write_str("partly transparent huge pages"),
            Landing::Base | Landing::Unknown => write!(f, "{size} pages"),
        }
    }
}
