//! The shared memory segment of a server, as the kernel maps it.

use hugepage_kernel::mapping::maps::Mapping;
use hugepage_kernel::{Bytes, PageSize};
use serde::{Deserialize, Serialize};

use crate::model::Landing;

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
