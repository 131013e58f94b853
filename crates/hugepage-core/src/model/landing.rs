//! What kind of pages a shared mapping has.

use std::fmt;

use crate::read::maps::Mapping;
use crate::read::smaps::Usage;
use crate::{Bytes, PageSize, Pages};

/// Where a segment landed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landing {
    /// In huge pages of a pool: reserved, locked, shared by all or nothing.
    Hugetlb,
    /// In base pages that the kernel has put together into transparent huge pages, all that is resident here.
    Thp,
    /// The same for a part of it.
    PartialThp,
    /// An SGA of several segments, some of them in huge pages of a pool and some not.
    Mixed,
    /// In base pages.
    Base,
    /// The kernel did not tell.
    Unknown,
}

impl Landing {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Hugetlb, Self::Thp, Self::PartialThp, Self::Mixed, Self::Base, Self::Unknown];

    /// Judges by the mapping's page size, and where that is the base size by `usage`, which is needed only if the
    /// host maps any shared memory by transparent huge pages.
    pub fn of(mapping: &Mapping, base: PageSize, usage: Option<&Usage>, pmd_size: Option<PageSize>) -> Self {
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
