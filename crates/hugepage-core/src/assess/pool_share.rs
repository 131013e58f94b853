//! How a pool is divided, and what a server would find after it stops and starts again.

use crate::read::pool::Pool;
use crate::{Bytes, PageSize, Pages};

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
    /// The same with the surplus pages that the kernel may or may not add.
    pub hopeful: Pages,
}

impl Share {
    /// `own`: the pages that the server has in this pool now. `None` where the kernel shows no reservations.
    pub fn of(pool: &Pool, own: Pages) -> Option<Self> {
        let persistent = pool.persistent();
        let others = pool.in_use()?.saturating_sub(own);
        let guaranteed = persistent.saturating_sub(others);
        Some(Self {
            persistent,
            others,
            guaranteed,
            hopeful: guaranteed.saturating_add(pool.overcommit.unwrap_or_default()),
        })
    }
}

/// The most pages of `size` that a host can hold beside `reserve_percent` of its memory and `elsewhere`, the memory in
/// pools of other sizes.
pub fn capacity(mem_total: Bytes, reserve_percent: u32, elsewhere: Bytes, size: PageSize) -> Pages {
    let usable = mem_total.saturating_sub(mem_total.percent(reserve_percent));
    size.pages_within(usable.saturating_sub(elsewhere))
}
