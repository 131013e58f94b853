//! What a start of the server with given settings would get, exact to the page.

use hugepage_kernel::{Bytes, PageSize, Pages};
use serde::{Deserialize, Serialize};

use crate::assessment::limits::excesses;
use crate::assessment::{NodeRoom, Outlook, Share};
use crate::model::{Cause, HugePages, PoolFact, PoolState, Requested};

/// The outcome of a start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forecast {
    /// Where the segment would land.
    pub outlook: Outlook,
    /// The huge page size that the start asks for.
    pub huge_page_size: Option<PageSize>,
    /// Pages of that size that the segment takes.
    pub needed: Option<Pages>,
    /// Pages that are certainly available once the server has stopped, after cgroup limits.
    pub guaranteed: Option<Pages>,
    /// The needed pages that are missing.
    pub missing: Option<Pages>,
    /// Why the start would not get what it asks for; `None` if it would.
    pub cause: Option<Cause>,
}

impl Forecast {
    /// Forecasts a start that asks for `requested` and a segment of `size`, of a server that has `own` pages of that pool now.
    pub fn of_start(requested: &Requested, size: Option<Bytes>, pool_state: &PoolState, own: Pages) -> Self {
        let PoolState { huge_page_size, pool, limits, lock_limit, .. } = pool_state;
        let supported = !matches!(pool, PoolFact::Unsupported(..));
        let needed = huge_page_size.filter(|_| supported).zip(size).map(|(page, size)| page.pages_to_hold(size));
        let outlook = Outlook::of_start(requested, needed, own, pool_state);

        let share = pool.known().and_then(|pool| Share::of_server(pool, own));
        let own_bytes = huge_page_size.map_or(Bytes(0), |page| page.times(own));
        let room = limits
            .as_ref()
            .and_then(|limits| limits.tightest_reservation_without(own_bytes))
            .map(|limit| limit.room_without(own_bytes));
        let allowed = room.zip(*huge_page_size).map_or(Pages(u64::MAX), |(room, page)| page.pages_within(room));
        let on_nodes = match needed.map(|needed| pool_state.node_room(needed, own)) {
            Some(NodeRoom::Short(pages)) => pages,
            _ => Pages(u64::MAX),
        };
        let guaranteed = share.map(|share| share.guaranteed.min(allowed).min(on_nodes));

        let size = needed.zip(*huge_page_size).map(|(needed, page)| page.times(needed));
        let cause = match outlook {
            Outlook::Hugetlb => limits
                .as_ref()
                .zip(size)
                .and_then(|(limits, size)| excesses(limits, size, own_bytes).into_iter().next())
                .map(|_| Cause::CgroupLimit),
            _ => {
                let has = share.map(|share| (share.persistent, Some(share.guaranteed)));
                let refusal = match lock_limit {
                    Some(limit) if limit.prevents_start() => limit.cause(),
                    _ => Cause::of_refusal(requested, needed, pool, has, room, *lock_limit),
                };
                Some(refusal.or_of_nodes(on_nodes < Pages(u64::MAX)))
            }
        };
        let missing = needed.zip(guaranteed).map(|(needed, guaranteed)| needed.saturating_sub(guaranteed));
        Self { outlook, huge_page_size: *huge_page_size, needed, guaranteed, missing, cause }
    }

    /// For a server that refuses its own configuration.
    pub const fn refused() -> Self {
        Self::nothing_but(Outlook::Fails)
    }

    /// For a configuration that could not be determined.
    pub const fn unknown() -> Self {
        Self::nothing_but(Outlook::Unknown)
    }

    const fn nothing_but(outlook: Outlook) -> Self {
        Self { outlook, huge_page_size: None, needed: None, guaranteed: None, missing: None, cause: None }
    }

    /// Why the outlook is unknown, for notes: the pages that are not guaranteed are surplus pages. `None` if it is known, and
    /// where another note says what could not be read. `start`: what happens, such as "a restart".
    pub fn note_on_surplus(&self, start: &str) -> Option<String> {
        let (needed, guaranteed, size) = (self.needed?, self.guaranteed?, self.huge_page_size?);
        (self.outlook == Outlook::Unknown && guaranteed < needed).then(|| {
            format!(
                "whether {start} gets huge pages depends on surplus pages (nr_overcommit_hugepages), which the kernel may be \
                 unable to provide: {guaranteed} of the {needed} pages of {size} needed are guaranteed"
            )
        })
    }

    /// Whether the server would start; `None` if that is unknown, as of a start whose io_uring rings the kernel may refuse.
    pub fn will_start(&self, requested: &Requested) -> Option<bool> {
        match self.outlook {
            Outlook::Fails => Some(false),
            _ if requested.io_uring => None,
            Outlook::Hugetlb | Outlook::Mixed | Outlook::Base => Some(true),
            Outlook::Unknown => (requested.huge_pages != HugePages::On).then_some(true),
        }
    }
}
