//! What a start of a server finds of its pool, and in which pages it would land, also after a crash.

use hugepage_kernel::Pages;
use hugepage_kernel::memory::pool::Pool;

use crate::assessment::{NodeRoom, Start};
use crate::model::{HugePages, LockLimit, PoolFact};

hugepage_facts::words! {
    /// What the next start would get.
    #[derive(Default)]
    pub enum Outlook {
        /// Huge pages, certainly.
        Hugetlb,
        /// Huge pages for a part, base pages for the rest (Oracle).
        Mixed,
        /// Base pages, without a message of the server.
        Base,
        /// Nothing: no huge pages with `huge_pages = on`, or no memory.
        Fails,
        /// Huge pages or not, by facts that are not visible, or on surplus pages that the kernel may or may not find.
        #[default]
        #[serde(other)]
        Unknown,
    }
}

impl Outlook {
    /// Whether the start succeeds, but not in huge pages as a whole.
    pub const fn loses(self) -> bool {
        matches!(self, Self::Mixed | Self::Base)
    }
}

impl Start<'_> {
    /// The pool, divided; `None` if it is unknown.
    pub fn share(&self) -> Option<Share> {
        Share::of_server(self.pool_state.pool.known()?, self.own)
    }

    /// The pages that it would land in, as far as the pool and its limits decide.
    pub(super) fn landing(&self) -> Outlook {
        let (requested, lock_limit) = (&self.requested, self.pool_state.lock_limit);
        if lock_limit.is_some_and(LockLimit::prevents_start) {
            return Outlook::Fails;
        }
        let refused = match requested.huge_pages {
            HugePages::Off => return Outlook::Base,
            HugePages::Try => Outlook::Base,
            HugePages::On => Outlook::Fails,
        };
        if requested.never_in_huge_pages() {
            return refused;
        }
        let (pool, needed) = match (&self.pool_state.pool, self.needed()) {
            (PoolFact::Unsupported(..), _) => return refused,
            (PoolFact::Known(pool), Some(needed)) => (pool, needed),
            _ => return Outlook::Unknown,
        };
        let bytes = pool.page_size.times(needed);
        if lock_limit.is_some_and(|limit| limit.refuses(bytes)) || self.allowed() < needed {
            return refused;
        }
        let may_refuse = lock_limit.is_some_and(|limit| limit.may_refuse(bytes));
        match self.share() {
            None => Outlook::Unknown,
            Some(share) if share.guaranteed >= needed => {
                match (self.node_room(), self.pool_state.sees_limits()) {
                    (NodeRoom::Short(_), _) => refused,
                    (NodeRoom::Enough, true) if !may_refuse => Outlook::Hugetlb,
                    _ => Outlook::Unknown,
                }
            }
            Some(share) if share.hopeful >= needed => Outlook::Unknown,
            // Oracle asks the kernel for what is missing, and only the kernel knows what it can give.
            Some(_) if requested.asks_kernel() => Outlook::Unknown,
            Some(share)
                if refused == Outlook::Base
                    && requested.may_mix()
                    && share.guaranteed > Pages(0) =>
            {
                Outlook::Mixed
            }
            Some(_) => refused,
        }
    }
}

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
        let new_surplus = pool
            .overcommit
            .unwrap_or_default()
            .saturating_sub(surplus_of_others);
        Some(Self {
            persistent,
            others,
            guaranteed,
            hopeful: guaranteed.saturating_add(new_surplus),
        })
    }
}
