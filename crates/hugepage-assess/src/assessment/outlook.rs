//! What a start of a server finds of its pool, and in which pages it would land, also after a crash.

use hugepage_kernel::Pages;
use hugepage_kernel::memory::pool::Pool;
use serde::{Deserialize, Serialize};

use crate::assessment::NodeRoom;
use crate::model::{HugePages, LockLimit, PoolFact, PoolState, Requested};

/// What the next start would get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outlook {
    /// Huge pages, certainly.
    Hugetlb,
    /// Huge pages for a part, base pages for the rest (Oracle).
    Mixed,
    /// Base pages, without a message of the server.
    Base,
    /// Nothing: `huge_pages = on`, and huge pages are not available.
    Fails,
    /// Huge pages or not, by facts that are not visible, or on surplus pages that the kernel may or may not find.
    #[serde(other)]
    Unknown,
}

impl Outlook {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Hugetlb, Self::Mixed, Self::Base, Self::Fails, Self::Unknown];

    /// For a server that asks for `needed` pages of the pool and has `own` of it now.
    pub fn of_start(requested: &Requested, needed: Option<Pages>, own: Pages, pool_state: &PoolState) -> Self {
        if pool_state.lock_limit.is_some_and(LockLimit::prevents_start) {
            return Self::Fails;
        }
        let refused = match requested.huge_pages {
            HugePages::Off => return Self::Base,
            HugePages::Try => Self::Base,
            HugePages::On => Self::Fails,
        };
        if requested.never_in_huge_pages() {
            return refused;
        }
        let (pool, needed) = match (&pool_state.pool, needed) {
            (PoolFact::Unsupported(..), _) => return refused,
            (PoolFact::Known(pool), Some(needed)) => (pool, needed),
            _ => return Self::Unknown,
        };
        let bytes = pool.page_size.times(needed);
        if pool_state.lock_limit.is_some_and(|limit| limit.refuses(bytes)) || pool_state.allowed(own) < needed {
            return refused;
        }
        let may_refuse = pool_state.lock_limit.is_some_and(|limit| limit.may_refuse(bytes));
        match Share::of_server(pool, own) {
            None => Self::Unknown,
            Some(share) if share.guaranteed >= needed => {
                match (pool_state.node_room(needed, own), &pool_state.limits) {
                    (NodeRoom::Short(_), _) => refused,
                    _ if may_refuse => Self::Unknown,
                    (NodeRoom::Enough, Some(limits)) if !limits.hidden_levels => Self::Hugetlb,
                    _ => Self::Unknown,
                }
            }
            Some(share) if share.hopeful >= needed => Self::Unknown,
            // Oracle asks the kernel for what is missing, and only the kernel knows what it can give.
            Some(_) if requested.asks_kernel() => Self::Unknown,
            Some(share) if refused == Self::Base && requested.may_mix() && share.guaranteed > Pages(0) => Self::Mixed,
            Some(_) => refused,
        }
    }
}

shown_as_serialized!(Outlook);

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
