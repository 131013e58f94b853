//! Facts compared: the running server with its next start, and its pages with the pool.

use hugepage_kernel::{PageSize, Pages};

use crate::assessment::{Forecast, NodeRoom, Outlook};
use crate::model::{Cause, CurrentStart, Demand, Facts, HugePages, Landing, Pending, Requested};

impl Pending {
    /// What a start with the configuration on disk would get; `None` if that is the running one. `own`: the pages that it has.
    pub fn forecast(&self, size: Option<PageSize>, own: Pages) -> Option<Forecast> {
        Some(match self {
            Self::Unchanged => return None,
            Self::Changed(demand, pool_state) => {
                let own = if pool_state.huge_page_size == size { own } else { Pages(0) };
                Forecast::of_start(&demand.requested, Some(demand.shared_memory), pool_state, own)
            }
            Self::Refused(_) => Forecast { outlook: Outlook::Fails, ..Forecast::unknown() },
            Self::Unknown => Forecast::unknown(),
        })
    }

    /// Whether the configuration on disk differs from the running one, and has `io_method = io_uring`.
    pub(crate) const fn asks_for_rings(&self) -> bool {
        matches!(self, Self::Changed(Demand { requested: Requested { io_uring: true, .. }, .. }, _))
    }
}

impl CurrentStart<'_> {
    /// The one of two possible next starts that needs more, if both come to the same; `None` if it depends on which it will be.
    pub fn start_of_both(&self, starts: [Pending; 2]) -> Option<Pending> {
        let [one, other] = starts.map(|start| Some((start.forecast(self.huge_page_size, self.own())?, start)));
        let (one, other) = (one?, other?);
        let is_same = one.0.outlook == other.0.outlook && one.0.huge_page_size == other.0.huge_page_size;
        let more = if other.0.needed > one.0.needed { other } else { one };
        is_same.then_some(more.1)
    }
}

impl Facts {
    /// Whether the running settings, or those on disk, ask for huge pages or may do so.
    pub(crate) fn wants_huge_pages(&self) -> bool {
        !self.requested.is_automatic_asm() && (self.requested.huge_pages != HugePages::Off || self.may_request_next())
    }

    /// Whether this outcome of a crash depends on settings of the running server that are not known.
    pub(super) fn hides_settings_of(&self, crash: &Forecast) -> bool {
        if !self.requested_may_differ || self.past.cause_at_start == Some(Cause::Disabled) {
            return false;
        }
        // Then it asked for pages of the same size. One page may be of any larger size.
        let is_recorded = crash.needed > Some(Pages(1)) && self.past.needed_at_start == crash.needed;
        match (self.landing(), crash.outlook) {
            // Without huge pages it goes on with "try", and ends with "on".
            (Landing::Hugetlb, outlook) => matches!(outlook, Outlook::Base | Outlook::Fails),
            // It may have been started with "off", or with another page size.
            (_, Outlook::Hugetlb) => self.past.cause_at_start.is_none() || !is_recorded,
            (_, Outlook::Mixed | Outlook::Base | Outlook::Fails) => !self.other_pools.is_empty() && !is_recorded,
            (_, Outlook::Unknown) => false,
        }
    }

    /// Whether this restart after a crash may lack pages, or be refused: a postmaster with `io_method = io_uring` may keep the rings
    /// of the segment that it lost, and the huge pages that they lie in (method_io_uring.c of PostgreSQL 18).
    pub(crate) fn may_keep_rings(&self, crash: &Forecast) -> bool {
        self.requested.io_uring && crash.outlook != Outlook::Fails
    }

    /// Whether the pages that `restart` lacks may be in rings of earlier crashes, which the server gives back when it stops.
    pub(crate) fn rings_may_hold_pages_of(&self, restart: &Forecast) -> bool {
        self.requested.io_uring && restart.cause == Some(Cause::PoolTaken)
    }

    /// The forecast of a restart, which is unknown if old rings may hold its pages.
    pub fn beside_old_rings(&self, restart: Forecast) -> Forecast {
        match self.rings_may_hold_pages_of(&restart) {
            true => Forecast { outlook: Outlook::Unknown, ..restart },
            false => restart,
        }
    }

    /// The pages of the pool that the configuration on disk needs.
    pub(crate) fn needed_pending(&self) -> Option<Pages> {
        let (Pending::Changed(demand, found), Some(page)) = (&self.pending, self.pool_state.huge_page_size) else {
            return None;
        };
        let is_of_pool = found.huge_page_size == Some(page) && demand.requested.huge_pages != HugePages::Off;
        is_of_pool.then(|| page.pages_to_hold(demand.shared_memory))
    }

    /// How many of `needed` pages are not available now.
    pub(super) fn missing(&self, needed: Pages) -> Option<Pages> {
        if self.landing() == Landing::Hugetlb {
            return Some(Pages(0));
        }
        let pool = self.pool_state.pool.known()?;
        let (own, on_nodes) = (self.own(), self.pool_state.node_room(needed, self.own()));
        let had = own.saturating_add(pool.available()?).min(self.pool_state.allowed(own));
        let missing = needed.saturating_sub(had.min(on_nodes.shortage().unwrap_or(Pages(u64::MAX))));
        let sees_limits = self.pool_state.limits.as_ref().is_some_and(|limits| !limits.hidden_levels);
        let all_seen = on_nodes != NodeRoom::Unknown && sees_limits;
        // Hidden limits can only increase the number: a positive number is certain, zero is not.
        (missing > Pages(0) || all_seen).then_some(missing)
    }
}
