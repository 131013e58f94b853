//! In which pages a server's shared memory landed and why, and what was recorded of that.

use std::fmt;
use std::time::SystemTime;

use hugepage_kernel::{PageSize, Pages};
use humantime::format_rfc3339_seconds;
use serde::{Deserialize, Serialize};

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

    /// Whether it has transparent huge pages.
    pub const fn is_transparent(self) -> bool {
        matches!(self, Self::Thp | Self::PartialThp)
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

/// What was recorded when a server started; `None` for what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    /// Why the segment did not land where it was asked for, as seen at that moment.
    pub cause_at_start: Option<Cause>,
    /// The pages that the server itself recorded as needed, whatever size they have.
    pub needed_at_start: Option<Pages>,
    /// What that start lost.
    pub loss: Option<Loss>,
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
