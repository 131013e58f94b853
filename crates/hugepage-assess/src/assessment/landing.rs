//! What kind of pages a shared mapping has, from its page size and its resident memory.

use hugepage_kernel::mapping::maps::Mapping;
use hugepage_kernel::mapping::smaps::Usage;
use hugepage_kernel::{Bytes, PageSize, Pages};

use crate::model::Landing;

impl Landing {
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
