//! How a pool is divided, and what a server would find after it stops and starts again.

use hugepage_kernel::Pages;
use hugepage_kernel::memory::pool::Pool;

/// A pool divided between one server and all other processes. Verified on real servers in both directions: a server
/// gets its pages after a restart exactly if `guaranteed` reaches its need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Pages that stay when their users stop: all but the surplus.
    pub persistent: Pages,
    /// Pages that all other processes have touched or reserved.
    pub others: Pages,
    /// Pages that are certain for this server once it has stopped.
    pub guaranteed: Pages,
    /// With the surplus pages that the kernel may add, or not: as many as `nr_overcommit_hugepages` leaves beside those
    /// that others keep (`alloc_surplus_hugetlb_folio` in mm/hugetlb.c).
    pub hopeful: Pages,
}

impl Share {
    /// `own`: the pages that the server has in this pool now. `None` if the kernel shows no reservations.
    pub fn of_server(pool: &Pool, own: Pages) -> Option<Self> {
        let persistent = pool.persistent();
        let others = pool.in_use()?.saturating_sub(own);
        let guaranteed = persistent.saturating_sub(others);
        // Pages that the server gives back are surplus pages first.
        let surplus_of_others = pool.surplus.unwrap_or_default().saturating_sub(own);
        let new_surplus = pool.overcommit.unwrap_or_default().saturating_sub(surplus_of_others);
        Some(Self { persistent, others, guaranteed, hopeful: guaranteed.saturating_add(new_surplus) })
    }
}
