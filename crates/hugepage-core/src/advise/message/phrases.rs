//! The phrases that several sentences share: what is so.

use crate::advise::message::terms::Terms;
use crate::assess::{Outlook, Status};
use crate::model::{Cause, HugePages, Landing, LockLimit, Loss, PoolFact};
use crate::read::cgroup::CgroupLimit;
use crate::{Bytes, PageSize, Pages};

/// Phrases on one status.
pub(in crate::advise) struct Words<'a>(pub(in crate::advise) &'a Status);

impl Words<'_> {
    pub(in crate::advise) fn size(&self) -> Bytes {
        self.0.facts.segment_size().unwrap_or_default()
    }

    pub(in crate::advise) fn terms(&self) -> &'static Terms {
        Terms::of(self.0.facts.asked.product)
    }

    /// The setting, as the administrator wrote it.
    pub(in crate::advise) fn asked(&self) -> &'static str {
        self.terms().setting(self.0.facts.asked.huge_pages)
    }

    pub(in crate::advise) fn memory(&self) -> String {
        format!("{} ({})", self.terms().memory, self.size())
    }

    pub(in crate::advise) fn page_size(&self) -> String {
        self.0.facts.huge_page_size.map_or("unknown size".to_owned(), |size| size.to_string())
    }

    pub(in crate::advise) fn needed(&self) -> Pages {
        self.0.needed.unwrap_or_default()
    }

    pub(in crate::advise) fn huge_pages(&self) -> String {
        format!("{} huge pages of {}", self.needed(), self.page_size())
    }

    pub(in crate::advise) fn base_pages(&self) -> String {
        let size = self.0.facts.page_size().map_or("base".to_owned(), |size| size.to_string());
        let asked = match self.0.facts.asked.huge_pages {
            HugePages::Off => "",
            _ => " although huge pages were asked for",
        };
        match &self.0.facts.segment {
            Some(segment) if segment.landing == Landing::Mixed => format!(
                "huge pages for {}, in base pages for the other {}{asked}",
                segment.in_huge_pages,
                segment.in_base_pages()
            ),
            _ => format!("{size} pages{asked}"),
        }
    }

    /// Behind "would lose".
    pub(in crate::advise) fn what_would_go(&self) -> &'static str {
        if self.0.outlook == Outlook::Mixed { "a part of them" } else { "them" }
    }

    pub(in crate::advise) fn pages_now(&self) -> String {
        match self.0.cause {
            None => self.huge_pages(),
            Some(_) => self.base_pages(),
        }
    }

    pub(in crate::advise) fn fault_limit(&self) -> Option<&CgroupLimit> {
        self.0.facts.limits.as_ref()?.lowest_fault()
    }

    /// What a cgroup lets be touched.
    pub(in crate::advise) fn allowed(&self) -> Bytes {
        self.fault_limit().map_or(Bytes(0), |limit| limit.limit)
    }

    pub(in crate::advise) fn reservation_limit(&self) -> Option<&CgroupLimit> {
        self.0.facts.limits.as_ref()?.tightest_reservation_without(self.own_bytes())
    }

    pub(in crate::advise) fn own_bytes(&self) -> Bytes {
        self.0.facts.huge_page_size.map_or(Bytes(0), |size| size.times(self.0.own))
    }

    /// Behind "... is in 4 kB pages".
    pub(in crate::advise) fn why(&self, cause: Cause) -> String {
        let needed = self.needed();
        let size = self.page_size();
        let pool = self.0.facts.pool.known();
        let nr = pool.map_or(Pages(0), |pool| pool.nr);
        let left = pool.and_then(|pool| pool.available()).unwrap_or_default().saturating_add(self.0.own);
        let missing = self.0.missing.unwrap_or_default();
        let reason = match cause {
            _ if self.could_land_now() => self.what_was_missing(cause),
            Cause::Disabled => return format!(" because {}", self.asked()),
            Cause::MemoryTarget => "with MEMORY_TARGET it is files in /dev/shm, which never have them".to_owned(),
            Cause::SysvSharedMemory => "with shared_memory_type = sysv PostgreSQL never uses them".to_owned(),
            Cause::PageSizeUnsupported => self.unsupported(),
            Cause::PoolEmpty => format!("the pool of {size} pages is empty where {needed} are needed"),
            Cause::PoolTooSmall => {
                format!("the pool has {nr} pages of {size} where {needed} are needed ({missing} missing)")
            }
            Cause::PoolTaken => format!(
                "of the pool's {nr} pages of {size} others leave {left} where {needed} are needed ({missing} missing)"
            ),
            Cause::CgroupLimit => {
                let room = self.reservation_limit().map_or(Bytes(0), CgroupLimit::room);
                format!("a cgroup leaves room to reserve {room} of the {} needed", self.size())
            }
            Cause::MemlockLimit => {
                format!("the {} may lock {} of the {} needed", self.terms().server, self.memlock(), self.size())
            }
            Cause::ShmGroup => {
                "the kernel lets only processes of the group vm.hugetlb_shm_group have them, and it is none".to_owned()
            }
            Cause::Unknown => "why could not be found out".to_owned(),
        };
        if self.mended_by_pool(cause) && self.0.does_not_fit() {
            format!(": {reason}, and {}", self.over_capacity())
        } else {
            format!(": {reason}")
        }
    }

    /// Whether a start would land in huge pages now, though the last one did not.
    pub(in crate::advise) fn could_land_now(&self) -> bool {
        matches!(
            self.0.cause,
            Some(Cause::PoolEmpty | Cause::PoolTooSmall | Cause::PoolTaken | Cause::CgroupLimit | Cause::Unknown)
        ) && self.0.missing == Some(Pages(0))
    }

    /// Behind "although huge pages were asked for: ", where [`Words::could_land_now`].
    pub(in crate::advise) fn what_was_missing(&self, cause: Cause) -> String {
        let at_start = match cause {
            Cause::PoolEmpty => "the pool was empty",
            Cause::PoolTooSmall => "the pool was too small",
            Cause::PoolTaken => "others had the pool's pages",
            Cause::CgroupLimit => "a cgroup did not allow it",
            _ => "they were missing",
        };
        let server = self.terms().server;
        format!(
            "{at_start} when the {server} started, and all {} pages of {} needed could be had now",
            self.needed(),
            self.page_size()
        )
    }

    pub(in crate::advise) fn over_capacity(&self) -> String {
        format!(
            "a pool of {} does not fit, because this host can hold {} beside the {}% of memory that it keeps for base pages",
            self.0.to_land.unwrap_or_default(),
            self.0.capacity.unwrap_or_default(),
            self.0.facts.reserve_percent
        )
    }

    pub(in crate::advise) fn unsupported(&self) -> String {
        let PoolFact::Unsupported(sizes) = &self.0.facts.pool else {
            return "this machine has no huge pages of huge_page_size".to_owned();
        };
        if sizes.is_empty() {
            return "this kernel has no huge pages".to_owned();
        }
        let sizes: Vec<_> = sizes.iter().map(PageSize::to_string).collect();
        format!("this machine has no pages of {}, only of {}", self.page_size(), sizes.join(", "))
    }

    /// The pool falls short of what a restart needs (else it is a cgroup).
    pub(in crate::advise) fn pool_falls_short(&self) -> bool {
        self.0.share.is_none_or(|share| share.guaranteed < self.needed())
    }

    pub(in crate::advise) fn what_a_restart_lacks(&self) -> String {
        match &self.0.facts.pool {
            PoolFact::Unsupported(..) => self.unsupported(),
            _ if self.0.facts.asked.sysv => "shared_memory_type = sysv can't have them".to_owned(),
            _ if self.may_not_lock() == Some(Cause::ShmGroup) => "its owner is not in vm.hugetlb_shm_group".to_owned(),
            _ if self.may_not_lock().is_some() => {
                format!("it may lock {} of the {} needed", self.memlock(), self.size())
            }
            _ if self.pool_falls_short() => format!(
                "{} pages of {} are needed and {} are certain",
                self.needed(),
                self.page_size(),
                self.0.share.map(|share| share.guaranteed).unwrap_or_default()
            ),
            _ => format!(
                "a cgroup leaves room to reserve {}",
                self.reservation_limit().map_or(Bytes(0), |limit| limit.room_without(self.own_bytes()))
            ),
        }
    }

    pub(in crate::advise) fn memlock(&self) -> Bytes {
        match self.0.facts.lock_limit {
            Some(LockLimit::Memlock(limit)) => limit,
            _ => Bytes(0),
        }
    }

    /// What keeps the server from locking what it needs.
    pub(in crate::advise) fn may_not_lock(&self) -> Option<Cause> {
        let needed = self.needed_bytes()?;
        self.0.facts.lock_limit.filter(|limit| limit.refuses(needed)).map(LockLimit::cause)
    }

    pub(in crate::advise) fn what_is_unknown(&self) -> String {
        let reason = match self.0.share {
            None => "what the pool has left, which can't be seen",
            Some(_) if self.pool_falls_short() => "surplus pages that the kernel may find or not",
            Some(_) => "cgroup limits that can't be seen from here",
        };
        format!("whether a restart gets huge pages depends on {reason}")
    }

    pub(in crate::advise) fn regressed(&self, loss: &Loss) -> String {
        let why = match self.0.cause {
            Some(cause) => self.why(cause),
            None => format!(": {}", self.what_a_restart_lacks()),
        };
        format!("{} has lost what it had before the start of {}: it {}{why}.", self.memory(), loss.at_utc(), loss.lost)
    }

    pub(in crate::advise) fn page_tables(&self) -> String {
        let meminfo = self.0.facts.meminfo.as_ref();
        let tables = meminfo.and_then(|meminfo| meminfo.page_tables).unwrap_or_default();
        let total = meminfo.and_then(|meminfo| meminfo.mem_total).unwrap_or_default();
        let percent = tables.0.saturating_mul(100).checked_div(total.0).unwrap_or_default();
        format!("Page tables take {tables}, which is {percent}% of this host's memory.")
    }

    pub(in crate::advise) fn waste(&self, needed: Pages) -> String {
        let nr = self.0.share.map(|share| share.persistent).unwrap_or_default();
        let idle = self.0.facts.huge_page_size.map_or(Bytes(0), |size| size.times(nr.saturating_sub(needed)));
        format!(
            "The pool has {nr} huge pages of {}, but {needed} are all that anybody running needs: {idle} lie idle.",
            self.page_size()
        )
    }
}
