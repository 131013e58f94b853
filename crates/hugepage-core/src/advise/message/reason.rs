//! Clauses on why a segment is not in huge pages, or would not be after a restart.

use std::fmt;

use crate::advise::message::status_text::{StatusText, is_of_pool, page_size};
use crate::advise::pool;
use crate::assess::{Forecast, Outlook, Status};
use crate::model::{Cause, LockLimit, Loss, Pending, PoolFact};
use crate::read::cgroup::CgroupLimit;
use crate::{Bytes, PageSize, Pages};

/// What a start lacks to be in huge pages, as a clause.
pub(super) struct Shortfall<'a> {
    pub cause: Option<Cause>,
    pub page_size: Option<PageSize>,
    pub needed: Pages,
    pub guaranteed: Pages,
    pub pool: Option<&'a PoolFact>,
    pub lock_limit: Option<LockLimit>,
}

impl<'a> Shortfall<'a> {
    /// What a start with the configuration on disk lacks.
    pub(super) fn of_pending(status: &'a Status) -> Self {
        let Forecast { cause, huge_page_size, needed, guaranteed, .. } = status.forecast;
        let ground = match &status.facts.pending {
            Pending::Changed(_, ground) => Some(ground),
            _ => None,
        };
        Self {
            cause,
            page_size: huge_page_size,
            needed: needed.unwrap_or_default(),
            guaranteed: guaranteed.unwrap_or_default(),
            pool: ground.map(|ground| &ground.pool),
            lock_limit: ground.and_then(|ground| ground.lock_limit),
        }
    }
}

impl fmt::Display for Shortfall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { needed, guaranteed, .. } = self;
        let size = page_size(self.page_size);
        match (self.cause, self.pool) {
            (None, _) => f.write_str("no page is missing"),
            (Some(Cause::Disabled), _) => f.write_str("huge_pages = off"),
            (Some(Cause::MemoryTarget), _) => {
                f.write_str("MEMORY_TARGET puts the SGA into files in /dev/shm, which cannot use huge pages")
            }
            (Some(Cause::SysvSharedMemory), _) => {
                f.write_str("PostgreSQL does not use huge pages with shared_memory_type = sysv")
            }
            (Some(Cause::PageSizeUnsupported), Some(PoolFact::Unsupported(sizes))) if sizes.is_empty() => {
                f.write_str("this kernel has no huge pages")
            }
            (Some(Cause::PageSizeUnsupported), Some(PoolFact::Unsupported(sizes))) => {
                let sizes: Vec<_> = sizes.iter().map(PageSize::to_string).collect();
                write!(f, "this machine has no pages of {size}, only of {}", sizes.join(", "))
            }
            (Some(Cause::PageSizeUnsupported), _) => f.write_str("this machine has no huge pages of huge_page_size"),
            (Some(Cause::ShmGroup), _) => f.write_str("its owner is not in the group of vm.hugetlb_shm_group"),
            (Some(Cause::MemlockLimit), _) => {
                let limit = match self.lock_limit {
                    Some(LockLimit::Memlock(limit)) => limit,
                    _ => Bytes(0),
                };
                let needed = self.page_size.map_or(Bytes(0), |size| size.times(*needed));
                write!(f, "its memlock limit is {limit}; {needed} is needed")
            }
            (Some(Cause::CgroupLimit), _) => {
                write!(f, "a cgroup allows only {guaranteed} of the {needed} pages of {size} needed")
            }
            (Some(Cause::PoolEmpty | Cause::PoolTooSmall | Cause::PoolTaken), _) => {
                write!(f, "only {guaranteed} of the {needed} pages of {size} needed are guaranteed")
            }
            (Some(Cause::Unknown), _) => f.write_str("the number of available pages is unknown"),
        }
    }
}

impl StatusText<'_> {
    /// What the restart after a crash lacks.
    pub(in crate::advise) fn crash_shortfall(&self) -> String {
        let Status { facts, crash, .. } = self.0;
        let shortfall = Shortfall {
            cause: crash.cause.or(Some(Cause::Unknown)),
            page_size: crash.huge_page_size,
            needed: crash.needed.unwrap_or_default(),
            guaranteed: crash.guaranteed.unwrap_or_default(),
            pool: Some(&facts.pool),
            lock_limit: facts.lock_limit,
        };
        match facts.kept_at_crash.at_most {
            Pages(0) => shortfall.to_string(),
            kept => format!("{shortfall}, because the io_uring rings keep up to {kept} pages at each crash"),
        }
    }

    /// What a restart with the running settings lacks.
    pub(in crate::advise) fn shortfall(&self) -> String {
        let facts = &self.0.facts;
        let cause = match (&facts.pool, self.lock_refusal()) {
            (PoolFact::Unsupported(..), _) => Cause::PageSizeUnsupported,
            _ if facts.asked.sysv => Cause::SysvSharedMemory,
            (_, Some(cause)) => cause,
            _ if self.pool_falls_short() => Cause::PoolTooSmall,
            _ => Cause::CgroupLimit,
        };
        let allowed =
            || Some(facts.huge_page_size?.pages_within(self.reservation_limit()?.room_without(self.own_bytes())));
        let guaranteed = match cause {
            Cause::CgroupLimit => allowed(),
            _ => self.0.share.map(|share| share.guaranteed),
        };
        self.with_shortfall(cause, guaranteed.unwrap_or_default()).to_string()
    }

    fn with_shortfall(&self, cause: Cause, guaranteed: Pages) -> Shortfall<'_> {
        let facts = &self.0.facts;
        Shortfall {
            cause: Some(cause),
            page_size: facts.huge_page_size,
            needed: self.needed(),
            guaranteed,
            pool: Some(&facts.pool),
            lock_limit: facts.lock_limit,
        }
    }

    /// Behind "... is in 4 kB pages".
    pub(in crate::advise) fn reason(&self, cause: Cause) -> String {
        let needed = self.needed();
        let size = page_size(self.0.facts.huge_page_size);
        let pool = self.0.facts.pool.known();
        let nr = pool.map_or(Pages(0), |pool| pool.nr);
        let available = pool.and_then(|pool| pool.available()).unwrap_or_default().saturating_add(self.0.own);
        let missing = self.0.missing.unwrap_or_default();
        let reason = match cause {
            _ if self.could_land_now() => self.reason_at_start(cause),
            Cause::Disabled => return format!(" because {}{}", self.setting(), self.asked_on_disk()),
            Cause::PoolEmpty => format!("the pool of {size} pages is empty; {needed} are needed"),
            Cause::PoolTooSmall => {
                format!("the pool has {nr} pages of {size}; {needed} are needed ({missing} missing)")
            }
            Cause::PoolTaken => format!(
                "only {available} of the pool's {nr} pages of {size} are available; {needed} are needed ({missing} missing)"
            ),
            Cause::CgroupLimit => {
                let room = self.reservation_limit().map_or(Bytes(0), CgroupLimit::room);
                format!("a cgroup allows only {room} of the {} needed", self.size())
            }
            Cause::Unknown => "the cause could not be determined".to_owned(),
            cause => self.with_shortfall(cause, Pages(0)).to_string(),
        };
        if is_of_pool(cause) && self.0.does_not_fit() {
            format!(
                ": {reason}, and a pool of {} pages exceeds the {}",
                self.0.to_land.unwrap_or_default(),
                self.0.capacity.map(pool::held).unwrap_or_default()
            )
        } else {
            format!(": {reason}")
        }
    }

    /// Behind "because huge_pages = off", where the configuration on disk asks for huge pages.
    fn asked_on_disk(&self) -> String {
        let forecast = &self.0.forecast;
        match (self.0.of_pending, self.0.outlook, forecast.cause) {
            (false, ..) | (_, _, Some(Cause::Disabled)) => String::new(),
            (_, Outlook::Hugetlb, _) => {
                "; a restart with the configuration on disk would land in huge pages".to_owned()
            }
            (_, Outlook::Unknown, None) => "; what the configuration on disk asks for is unknown".to_owned(),
            _ => format!("; the configuration on disk asks for huge pages, but {}", Shortfall::of_pending(self.0)),
        }
    }

    /// Where [`StatusText::could_land_now`].
    fn reason_at_start(&self, cause: Cause) -> String {
        let at_start = match cause {
            Cause::PoolEmpty => "the pool was empty",
            Cause::PoolTooSmall => "the pool was too small",
            Cause::PoolTaken => "other processes held the pool's pages",
            Cause::CgroupLimit => "a cgroup limit refused them",
            _ => "they were unavailable",
        };
        let (server, needed) = (self.terms().server, self.needed());
        let size = page_size(self.0.facts.huge_page_size);
        format!("{at_start} when the {server} started; all {needed} pages of {size} needed are available now")
    }

    pub(in crate::advise) fn uncertainty(&self) -> String {
        let reason = match self.0.share {
            None => "the available pages of the pool, which are unknown",
            Some(_) if self.pool_falls_short() => "surplus pages, which the kernel may be unable to provide",
            Some(_) => "cgroup limits that are not visible from here",
        };
        format!("whether a restart gets huge pages depends on {reason}")
    }

    /// Behind "would lose".
    pub(in crate::advise) fn lost_pages(&self) -> &'static str {
        if self.0.outlook == Outlook::Mixed { "a part of them" } else { "them" }
    }

    pub(in crate::advise) fn regressed(&self, loss: &Loss) -> String {
        let reason = match self.0.cause {
            Some(cause) => self.reason(cause),
            None => format!(": {}", self.shortfall()),
        };
        format!("{} regressed at the start of {}: it {}{reason}.", self.memory(), loss.at_utc(), loss.lost)
    }

    pub(in crate::advise) fn page_tables(&self) -> String {
        let meminfo = self.0.facts.meminfo.as_ref();
        let tables = meminfo.and_then(|meminfo| meminfo.page_tables).unwrap_or_default();
        let total = meminfo.and_then(|meminfo| meminfo.mem_total).unwrap_or_default();
        let percent = tables.0.saturating_mul(100).checked_div(total.0).unwrap_or_default();
        format!("Page tables take {tables}, which is {percent}% of this host's memory.")
    }
}
