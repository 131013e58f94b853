//! The shared memory of a running server: its segment, and in which pages it landed.

use hugepage_facts::{Landing, TransparentPages};
use hugepage_kernel::mapping::maps::Mapping;
use hugepage_kernel::{Bytes, PageSize, Pages};

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

/// Determines the landing from the mapping's page size. `may_be_thp`: whether the host has shared memory in transparent huge
/// pages, so that `seen` decides on base pages.
pub fn landing_of(
    mapping: &Mapping,
    base: PageSize,
    may_be_thp: bool,
    seen: Option<&TransparentPages>,
) -> Landing {
    match mapping.page_size {
        None => Landing::Unknown,
        Some(size) if size > base => Landing::Hugetlb,
        Some(_) if may_be_thp => {
            seen.map_or(Landing::Unknown, |seen| landing_seen(seen, mapping.size()))
        }
        Some(_) => Landing::Base,
    }
}

/// The pages of a segment of `size`, which is not in huge pages of a pool.
pub fn landing_seen(seen: &TransparentPages, size: Bytes) -> Landing {
    if seen.pmd_mapped == Bytes(0) {
        return Landing::Base;
    }
    // The two ends of a mapping need not fill a whole huge page.
    let ends = seen.size.map_or(Bytes(1), |size| size.times(Pages(2)));
    let is_whole = seen.resident.saturating_sub(seen.pmd_mapped) < ends;
    // After a collapse that was stopped the postmaster may have touched nothing of the rest.
    let touched = seen.most_resident.min(size);
    let has_rest = seen
        .of_host
        .is_some_and(|of_host| of_host < touched.percent(90));
    if is_whole && !has_rest {
        Landing::Thp
    } else {
        Landing::PartialThp
    }
}
