//! What a start lost against the one before.

use std::fmt;
use std::time::SystemTime;

use hugepage_kernel::PageSize;
use humantime::format_rfc3339_seconds;
use serde::{Deserialize, Serialize};

use crate::model::Landing;

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
