//! What a host has for the starts of instances.

use hugepage_assess::model::PoolFact;
use hugepage_assess::pools::{self, PoolRow};
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::{Bytes, PageSize};

use crate::readers::oratab::HostOratab;

/// What the host has for a start.
#[derive(Clone, Copy)]
pub struct HostOfStarts<'a> {
    /// The instances that may start.
    pub oratab: &'a HostOratab<'a>,
    /// The host's memory; `None` if it could not be read.
    pub meminfo: Option<&'a Meminfo>,
    /// All pools.
    pub pools: &'a [PoolRow],
    /// The memory in System V segments of huge pages that the running instances of a user have.
    pub held: &'a dyn Fn(u32) -> Bytes,
}

impl HostOfStarts<'_> {
    /// The size of the pages that an instance asks for.
    pub(crate) fn page_size(&self) -> Option<PageSize> {
        self.meminfo?.huge_page_size
    }

    /// The pool that a start finds.
    pub(crate) fn pool(&self) -> PoolFact {
        match (self.page_size(), self.meminfo) {
            (Some(size), _) => {
                pools::of_size(self.pools, size).map_or(PoolFact::Unknown, |row| PoolFact::Known(row.pool.clone()))
            }
            (None, Some(_)) => PoolFact::Unsupported(Vec::new()),
            (None, None) => PoolFact::Unknown,
        }
    }
}
