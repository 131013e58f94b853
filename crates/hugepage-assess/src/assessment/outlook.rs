//! In which pages the next start of a server would land, also a restart after a crash.

use hugepage_kernel::Pages;
use serde::{Deserialize, Serialize};

use crate::assessment::node_room::NodeRoom;
use crate::assessment::pool_share::Share;
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
        let limits = pool_state.limits.as_ref();
        let (pool, needed) = match (&pool_state.pool, needed) {
            (PoolFact::Unsupported(..), _) => return refused,
            (PoolFact::Known(pool), Some(needed)) => (pool, needed),
            _ => return Self::Unknown,
        };
        if pool_state.lock_limit.is_some_and(|limit| limit.refuses(pool.page_size.times(needed))) {
            return refused;
        }
        let may_refuse = pool_state.lock_limit.is_some_and(|limit| limit.may_refuse(pool.page_size.times(needed)));
        let own_bytes = pool.page_size.times(own);
        if let Some(limit) = limits.and_then(|limits| limits.tightest_reservation_without(own_bytes))
            && limit.room_without(own_bytes) < pool.page_size.times(needed)
        {
            return refused;
        }
        match Share::of_server(pool, own) {
            None => Self::Unknown,
            Some(share) if share.guaranteed >= needed => match (pool_state.node_room(needed, own), limits) {
                (NodeRoom::Short(_), _) => refused,
                _ if may_refuse => Self::Unknown,
                (NodeRoom::Enough, Some(limits)) if !limits.hidden_levels => Self::Hugetlb,
                _ => Self::Unknown,
            },
            Some(share) if share.hopeful >= needed => Self::Unknown,
            // Oracle asks the kernel for what is missing, and only the kernel knows what it can give.
            Some(_) if requested.asks_kernel() => Self::Unknown,
            Some(share) if refused == Self::Base && requested.may_mix() && share.guaranteed > Pages(0) => Self::Mixed,
            Some(_) => refused,
        }
    }
}

shown_as_serialized!(Outlook);
