//! What kind of pages a shared mapping has.

use serde::{Deserialize, Serialize};

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
}

shown_as_serialized!(Landing);
