//! What a start of the server with given settings would get, exact to the page.

use hugepage_facts::{Cause, Landing};
use hugepage_kernel::{PageSize, Pages};

use crate::assessment::{Danger, Outlook, Start};
use crate::model::{Facts, HugePages, LockLimit, PoolFact, Requested};

/// The outcome of a start; the default is that of one of which nothing is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// Where it would land without huge pages.
    pub without: Outlook,
    /// What stops the start, or may stop it, beside missing huge pages.
    pub danger: Option<Danger>,
    /// Whether it is unknown because of io_uring: old rings may keep huge pages until the server stops, and the kernel may refuse
    /// new ones (method_io_uring.c of PostgreSQL 18).
    pub depends_on_rings: bool,
}

impl Start<'_> {
    /// What it would get.
    pub fn forecast(&self) -> Forecast {
        let requested = &self.requested;
        let (needed, landing, share) = (self.needed(), self.landing(), self.share());
        let on_nodes = self.node_room().shortage().unwrap_or(Pages(u64::MAX));
        let guaranteed = share.map(|share| share.guaranteed.min(self.allowed()).min(on_nodes));
        let cause = match (landing, self.pool_state.lock_limit) {
            (Outlook::Hugetlb, _) => (!self.excesses().is_empty()).then_some(Cause::CgroupLimit),
            (_, Some(limit)) if limit.prevents_start() => Some(limit.cause()),
            _ => {
                let has = share.map(|share| (share.persistent, Some(share.guaranteed)));
                Some(self.refusal(has))
            }
        };
        let missing = needed
            .zip(guaranteed)
            .map(|(needed, guaranteed)| needed.saturating_sub(guaranteed));
        let in_base_pages = self.danger_in_base_pages();
        let without = match (&in_base_pages, requested.huge_pages) {
            (Some(danger), _) => danger.outlook(),
            (None, HugePages::On) => Outlook::Fails,
            (None, HugePages::Off | HugePages::Try) => Outlook::Base,
        };
        let danger = match landing {
            Outlook::Hugetlb => self.danger_of_touch(),
            Outlook::Unknown => self.danger_of_touch().or(in_base_pages),
            Outlook::Base => in_base_pages,
            Outlook::Mixed | Outlook::Fails => None,
        };
        let outlook = match (landing, &danger) {
            (Outlook::Hugetlb | Outlook::Base, Some(danger)) => danger.outlook(),
            _ => landing,
        };
        let depends_on_rings =
            requested.io_uring && (outlook == Outlook::Hugetlb || cause == Some(Cause::PoolTaken));
        Forecast {
            outlook: if depends_on_rings {
                Outlook::Unknown
            } else {
                outlook
            },
            huge_page_size: self.pool_state.huge_page_size,
            needed,
            guaranteed,
            missing,
            cause,
            without,
            danger,
            depends_on_rings,
        }
    }

    /// Why it does not get the pages that it needs. `has`: the pages of the pool, and those of them that no other process uses or has
    /// reserved.
    fn refusal(&self, has: Option<(Pages, Option<Pages>)>) -> Cause {
        let (requested, pool_state) = (&self.requested, self.pool_state);
        if requested.huge_pages == HugePages::Off {
            return Cause::Disabled;
        }
        if requested.is_in_files() {
            return Cause::MemoryTarget;
        }
        if requested.sysv {
            return Cause::SysvSharedMemory;
        }
        let (page_size, needed, (all, left)) = match (&pool_state.pool, self.needed(), has) {
            (PoolFact::Unsupported(..), ..) => return Cause::PageSizeUnsupported,
            (PoolFact::Known(pool), Some(needed), Some(has)) => (pool.page_size, needed, has),
            _ => return Cause::Unknown,
        };
        let refusal = pool_state
            .lock_limit
            .filter(|limit| limit.refuses(page_size.times(needed)));
        match (left, refusal.map_or(Cause::Unknown, LockLimit::cause)) {
            _ if all == Pages(0) => Cause::PoolEmpty,
            _ if all < needed => Cause::PoolTooSmall,
            (Some(left), _) if left < needed => Cause::PoolTaken,
            _ if self.allowed() < needed => Cause::CgroupLimit,
            (_, Cause::Unknown) if self.node_room().shortage().is_some() => Cause::NodeLimit,
            (_, cause) => cause,
        }
    }
}

impl Forecast {
    /// Why the outlook is unknown, for notes: the pages that are not guaranteed are surplus pages. `None` if it is known, and
    /// where another note says what could not be read. `start`: what happens, such as "a restart".
    pub fn note_on_surplus(&self, start: &str) -> Option<String> {
        let (needed, guaranteed, size) = (self.needed?, self.guaranteed?, self.huge_page_size?);
        let is_known = self.outlook != Outlook::Unknown || guaranteed >= needed;
        let has_other_reason = self.depends_on_rings || self.obstacle().is_some();
        (!is_known && !has_other_reason).then(|| {
            format!(
                "whether {start} gets huge pages depends on surplus pages (nr_overcommit_hugepages), which the kernel may be \
                 unable to provide: {guaranteed} of the {needed} pages of {size} needed are guaranteed"
            )
        })
    }

    /// The danger that decides the outlook; `None` if none does.
    pub fn obstacle(&self) -> Option<&Danger> {
        let decides = |danger: &&Danger| danger.outlook() == self.outlook;
        self.danger
            .as_ref()
            .filter(|_| self.outlook != Outlook::Hugetlb)
            .filter(decides)
    }

    /// Whether the server would start; `None` if that is unknown, as of a start whose io_uring rings the kernel may refuse, or that
    /// may touch more than its cgroup allows.
    pub fn will_start(&self, requested: &Requested) -> Option<bool> {
        match self.outlook {
            Outlook::Fails => Some(false),
            _ if requested.io_uring || self.danger.is_some() => None,
            Outlook::Hugetlb | Outlook::Mixed | Outlook::Base => Some(true),
            Outlook::Unknown => (requested.huge_pages != HugePages::On).then_some(true),
        }
    }
}

/// `None` if the segment is in huge pages.
pub fn cause_of(facts: &Facts) -> Option<Cause> {
    match facts.landing() {
        Landing::Hugetlb => return None,
        Landing::Unknown => return Some(Cause::Unknown),
        Landing::Thp | Landing::PartialThp | Landing::Mixed | Landing::Base => {}
    }
    let left = |available: Pages| available.saturating_add(facts.own());
    let has = facts
        .pool()
        .map(|pool| (pool.nr, pool.available().map(left)));
    Some(match facts.start_again().refusal(has) {
        // Nothing prevents huge pages now, so the cause that was seen at the start is the best answer.
        Cause::Unknown => facts.past.cause_at_start.unwrap_or(Cause::Unknown),
        cause => cause,
    })
}
