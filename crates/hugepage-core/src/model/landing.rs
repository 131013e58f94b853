//! What kind of pages a shared mapping has.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a segment landed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Landing {
    /// In huge pages of a pool: reserved, locked, shared by all or nothing.
    Hugetlb,
    /// In base pages that the kernel has put together into transparent huge pages, all that is resident here.
    Thp,
    /// The same for a part of it.
    #[serde(rename = "partial thp")]
    PartialThp,
    /// An SGA of several segments, some of them in huge pages of a pool and some not.
    Mixed,
    /// In base pages.
    Base,
    /// The kernel did not tell.
    #[serde(other)]
    Unknown,
}

impl Landing {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Hugetlb, Self::Thp, Self::PartialThp, Self::Mixed, Self::Base, Self::Unknown];
}

impl fmt::Display for Landing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hugetlb => "hugetlb",
            Self::Thp => "thp",
            Self::PartialThp => "partial thp",
            Self::Mixed => "mixed",
            Self::Base => "base",
            Self::Unknown => "unknown",
        })
    }
}
