//! Facts compared: the running server with its next start, and its pages with the pool.

use hugepage_facts::{Cause, Landing};
use hugepage_kernel::Pages;

use crate::assessment::{Forecast, NodeRoom, Outlook};
use crate::model::{CurrentStart, Facts, HugePages, Pending};

impl CurrentStart<'_> {
    /// What a start with the configuration on disk would get.
    pub fn forecast(&self, pending: &Pending) -> Forecast {
        match pending {
            Pending::Refused(_) => Forecast {
                outlook: Outlook::Fails,
                ..Forecast::default()
            },
            _ => self
                .next(pending)
                .map_or_else(Forecast::default, |start| start.forecast()),
        }
    }

    /// The one of two possible next starts that needs more, if both come to the same; `None` if it depends on which it will be.
    pub fn start_of_both(&self, starts: [Pending; 2]) -> Option<Pending> {
        let [one, other] = starts.map(|start| (self.forecast(&start), start));
        let is_same =
            one.0.outlook == other.0.outlook && one.0.huge_page_size == other.0.huge_page_size;
        let more = if other.0.needed > one.0.needed {
            other
        } else {
            one
        };
        is_same.then_some(more.1)
    }
}

impl Facts {
    /// Whether the running settings, or those on disk, ask for huge pages or may do so.
    pub(crate) fn wants_huge_pages(&self) -> bool {
        !self.requested.is_automatic_asm()
            && (self.requested.huge_pages != HugePages::Off || self.may_request_next())
    }

    /// Whether this outcome of a crash depends on settings of the running server that are not known.
    pub(super) fn hides_settings_of(&self, crash: &Forecast) -> bool {
        if !self.requested_may_differ || self.past.cause_at_start == Some(Cause::Disabled) {
            return false;
        }
        // Then it asked for pages of the same size. One page may be of any larger size.
        let is_recorded =
            crash.needed > Some(Pages(1)) && self.past.needed_at_start == crash.needed;
        match (self.landing(), crash.outlook) {
            // Without huge pages it goes on with "try", and ends with "on".
            (Landing::Hugetlb, outlook) => matches!(outlook, Outlook::Base | Outlook::Fails),
            // It may have been started with "off", or with another page size.
            (_, Outlook::Hugetlb) => self.past.cause_at_start.is_none() || !is_recorded,
            (_, Outlook::Mixed | Outlook::Base | Outlook::Fails) => {
                self.has_other_pools && !is_recorded
            }
            (_, Outlook::Unknown) => false,
        }
    }

    /// The pages of the pool that the configuration on disk needs.
    pub(crate) fn needed_pending(&self) -> Option<Pages> {
        let (Pending::Changed(demand, found), Some(page)) =
            (&self.pending, self.pool_state.huge_page_size)
        else {
            return None;
        };
        let is_of_pool =
            found.huge_page_size == Some(page) && demand.requested.huge_pages != HugePages::Off;
        is_of_pool.then(|| page.pages_to_hold(demand.shared_memory))
    }

    /// How many of the pages that the running segment needs are not available now.
    pub(super) fn missing(&self) -> Option<Pages> {
        let start = self.start_again();
        let needed = start.needed()?;
        if self.is_in_huge_pages() {
            return Some(Pages(0));
        }
        let (available, on_nodes) = (self.pool()?.available()?, start.node_room());
        let had = start
            .own
            .saturating_add(available)
            .min(start.allowed())
            .min(on_nodes.shortage().unwrap_or(Pages(u64::MAX)));
        let missing = needed.saturating_sub(had);
        let all_seen = on_nodes != NodeRoom::Unknown && self.pool_state.sees_limits();
        // Hidden limits can only increase the number: a positive number is certain, zero is not.
        (missing > Pages(0) || all_seen).then_some(missing)
    }
}
