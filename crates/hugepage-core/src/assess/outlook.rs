//! What the next start of a server would land in, a restart after a crash included.

use std::fmt;

use crate::Pages;
use crate::assess::facts::{Asked, HugePages, PoolFact};
use crate::assess::share::Share;
use crate::read::cgroup::Limits;

/// What the next start would get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// Huge pages, for certain.
    Hugetlb,
    /// Base pages, without a word from the server.
    Base,
    /// Nothing: `huge_pages = on`, and they can't be had.
    Fails,
    /// It depends on what can't be seen, or on surplus pages that the kernel may find or not.
    Unknown,
}

impl Outlook {
    /// For a server that asks for `needed` pages of the pool and has `own` of it now.
    pub fn of(asked: &Asked, needed: Option<Pages>, own: Pages, pool: &PoolFact, limits: Option<&Limits>) -> Self {
        let refused = match asked.huge_pages {
            HugePages::Off => return Self::Base,
            HugePages::Try => Self::Base,
            HugePages::On => Self::Fails,
        };
        if asked.sysv {
            return refused;
        }
        let (pool, needed) = match (pool, needed) {
            (PoolFact::Unsupported(..), _) => return refused,
            (PoolFact::Known(pool), Some(needed)) => (pool, needed),
            _ => return Self::Unknown,
        };
        let own_bytes = pool.page_size.times(own);
        if let Some(limit) = limits.and_then(|limits| limits.tightest_reservation_without(own_bytes))
            && limit.room_without(own_bytes) < pool.page_size.times(needed)
        {
            return refused;
        }
        match Share::of(pool, own) {
            None => Self::Unknown,
            Some(share) if share.guaranteed >= needed => match limits {
                Some(limits) if !limits.hidden_levels => Self::Hugetlb,
                _ => Self::Unknown,
            },
            Some(share) if share.hopeful >= needed => Self::Unknown,
            Some(_) => refused,
        }
    }
}

impl Outlook {
    /// How much is lost, for comparing two outlooks.
    pub const fn gravity(self) -> u8 {
        match self {
            Self::Hugetlb => 0,
            Self::Unknown => 1,
            Self::Base => 2,
            Self::Fails => 3,
        }
    }
}

impl fmt::Display for Outlook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hugetlb => "hugetlb",
            Self::Base => "base",
            Self::Fails => "fails",
            Self::Unknown => "unknown",
        })
    }
}
