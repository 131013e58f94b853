//! The shared memory segment of a server, as the kernel maps it.

use crate::model::Landing;
use crate::read::maps::Mapping;
use crate::{Bytes, PageSize};

/// The main shared memory segment, or an SGA of several, as the kernel maps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The kernel's name of the mapping; that of the largest one if there are several.
    pub name: String,
    /// Its whole size.
    pub size: Bytes,
    /// What it takes of a pool: each mapping rounded up to whole huge pages.
    pub to_reserve: Bytes,
    /// The part in huge pages.
    pub in_huge_pages: Bytes,
    /// The size of its pages; for a mixed segment the size of the huge ones. `None` where the kernel does not show it.
    pub page_size: Option<PageSize>,
    /// What kind of pages it has.
    pub landing: Landing,
}

impl Segment {
    /// A segment of a single mapping.
    pub fn of(mapping: &Mapping, landing: Landing) -> Self {
        let size = mapping.size();
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
