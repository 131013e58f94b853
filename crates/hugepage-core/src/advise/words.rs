//! One sentence on what is so, one on what to do, for the finding that a verdict speaks of.

use crate::advise::{command, restart};
use crate::assess::{Cause, Finding, HugePages, Loss, PoolFact, Status};
use crate::read::cgroup::Limit;
use crate::{Bytes, PageSize, Pages};

/// What is so.
pub fn message(status: &Status) -> String {
    let words = Words(status);
    match status.verdict().1 {
        Finding::AsAsked => format!("{} is in {}, and a restart keeps them.", words.memory(), words.huge_pages()),
        Finding::CgroupBelowSegment => format!(
            "{} is in huge pages, but a cgroup allows only {} of them: what touches more is killed by SIGBUS, or \
             fails to read as if its files were damaged.",
            words.memory(),
            words.allowed(),
        ),
        Finding::RestartFails | Finding::RestartLoses | Finding::OutlookUnknown if status.of_pending => {
            restart::message(status).unwrap_or_default()
        }
        Finding::RestartFails => {
            format!("The next start would fail, because huge_pages = on and {}.", words.what_a_restart_lacks())
        }
        Finding::RestartLoses => format!(
            "{} is in huge pages, but a restart, or a crash of one backend, would lose them: {}.",
            words.memory(),
            words.what_a_restart_lacks()
        ),
        Finding::Regressed(loss) => words.regressed(loss),
        Finding::BasePages(cause) => format!("{} is in {}{}.", words.memory(), words.base_pages(), words.why(*cause)),
        Finding::TransparentHugePages => format!(
            "{} is in transparent huge pages, which nothing reserves: they can be split and swapped, and a restart \
             may not get them.",
            words.memory()
        ),
        Finding::PageTables => words.page_tables(),
        Finding::PoolWasted { needed } => words.waste(*needed),
        Finding::LandingUnknown => "Which pages shared memory is in could not be found out; notes say why.".to_owned(),
        Finding::OutlookUnknown => {
            format!("{} is in {}, but {}.", words.memory(), words.pages_now(), words.what_is_unknown())
        }
    }
}

/// What to do; `None` where nothing is to be done.
pub fn hint(status: &Status) -> Option<String> {
    let words = Words(status);
    match status.verdict().1 {
        Finding::AsAsked | Finding::LandingUnknown => None,
        Finding::CgroupBelowSegment => words.raise_fault_limit(),
        Finding::RestartFails | Finding::RestartLoses | Finding::OutlookUnknown => match status.of_pending {
            true => Some(restart::hint(status)),
            false => words.keep(),
        },
        Finding::Regressed(_) => status.cause.map_or_else(|| words.keep(), |cause| words.mend(cause)),
        Finding::BasePages(cause) => words.mend(*cause),
        Finding::TransparentHugePages => words.mend(status.cause?),
        Finding::PageTables => match status.cause {
            Some(cause) => words.mend(cause),
            None => Some("Reduce the number of processes, for example with a connection pooler.".to_owned()),
        },
        Finding::PoolWasted { needed } => {
            Some(format!("If nothing else is to start that uses them, run \"{}\".", words.set_pool(*needed)?))
        }
    }
}

/// With a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| format!("{}{}.", first.to_uppercase(), characters.as_str())).unwrap_or_default()
}

fn raise(limit: &Limit, to: Bytes) -> String {
    format!("set {} to at least {} bytes", limit.path, to.0)
}

/// The phrases that several sentences share.
pub(super) struct Words<'a>(pub(super) &'a Status);

impl Words<'_> {
    fn size(&self) -> Bytes {
        self.0.facts.segment.as_ref().map_or(Bytes(0), |segment| segment.mapping.size())
    }

    fn memory(&self) -> String {
        format!("Shared memory ({})", self.size())
    }

    fn page_size(&self) -> String {
        self.0.facts.huge_page_size.map_or("unknown size".to_owned(), |size| size.to_string())
    }

    fn needed(&self) -> Pages {
        self.0.needed.unwrap_or_default()
    }

    pub(super) fn huge_pages(&self) -> String {
        format!("{} huge pages of {}", self.needed(), self.page_size())
    }

    fn base_pages(&self) -> String {
        let size = self.0.facts.page_size().map_or("base".to_owned(), |size| size.to_string());
        let asked = match self.0.facts.asked.huge_pages {
            HugePages::Off => "",
            _ => " although huge pages were asked for",
        };
        format!("{size} pages{asked}")
    }

    pub(super) fn pages_now(&self) -> String {
        match self.0.cause {
            None => self.huge_pages(),
            Some(_) => self.base_pages(),
        }
    }

    fn fault_limit(&self) -> Option<&Limit> {
        self.0.facts.limits.as_ref()?.lowest_fault()
    }

    /// What a cgroup lets be touched.
    pub(super) fn allowed(&self) -> Bytes {
        self.fault_limit().map_or(Bytes(0), |limit| limit.limit)
    }

    pub(super) fn raise_fault_limit(&self) -> Option<String> {
        Some(format!("Set {} to at least {} bytes.", self.fault_limit()?.path, self.size().0))
    }

    fn reservation_limit(&self) -> Option<&Limit> {
        self.0.facts.limits.as_ref()?.tightest_reservation_without(self.own_bytes())
    }

    fn own_bytes(&self) -> Bytes {
        self.0.facts.huge_page_size.map_or(Bytes(0), |size| size.times(self.0.own))
    }

    /// What a cgroup must allow for the server to start in huge pages beside its other processes.
    fn wanted_of(&self, limit: &Limit) -> Option<Bytes> {
        Some(limit.usage.saturating_sub(self.own_bytes()).saturating_add(self.needed_bytes()?))
    }

    /// Behind "... is in 4 kB pages".
    fn why(&self, cause: Cause) -> String {
        let needed = self.needed();
        let size = self.page_size();
        let pool = self.0.facts.pool.known();
        let nr = pool.map_or(Pages(0), |pool| pool.nr);
        let available = pool.and_then(|pool| pool.available()).unwrap_or_default();
        let missing = self.0.missing.unwrap_or_default();
        let reason = match cause {
            _ if self.could_land_now() => self.what_was_missing(cause),
            Cause::Disabled => return " because huge_pages = off".to_owned(),
            Cause::SysvSharedMemory => "with shared_memory_type = sysv PostgreSQL never uses them".to_owned(),
            Cause::PageSizeUnsupported => self.unsupported(),
            Cause::PoolEmpty => format!("the pool of {size} pages is empty where {needed} are needed"),
            Cause::PoolTooSmall => {
                format!("the pool has {nr} pages of {size} where {needed} are needed ({missing} missing)")
            }
            Cause::PoolTaken => format!(
                "of the pool's {nr} pages of {size} others leave {available} where {needed} are needed ({missing} missing)"
            ),
            Cause::CgroupLimit => {
                let room = self.reservation_limit().map_or(Bytes(0), Limit::room);
                format!("a cgroup leaves room to reserve {room} of the {} needed", self.size())
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
    fn could_land_now(&self) -> bool {
        matches!(
            self.0.cause,
            Some(Cause::PoolEmpty | Cause::PoolTooSmall | Cause::PoolTaken | Cause::CgroupLimit | Cause::Unknown)
        ) && self.0.missing == Some(Pages(0))
    }

    /// Behind "although huge pages were asked for: ", where [`Words::could_land_now`].
    fn what_was_missing(&self, cause: Cause) -> String {
        let at_start = match cause {
            Cause::PoolEmpty => "the pool was empty when the server started",
            Cause::PoolTooSmall => "the pool was too small when the server started",
            Cause::PoolTaken => "others had the pool's pages when the server started",
            Cause::CgroupLimit => "a cgroup did not allow it when the server started",
            _ => "they were missing when the server started",
        };
        format!("{at_start}, and all {} pages of {} needed could be had now", self.needed(), self.page_size())
    }

    fn over_capacity(&self) -> String {
        format!(
            "a pool of {} does not fit, because this host can hold {} beside the {}% of memory that it keeps for base pages",
            self.0.to_land.unwrap_or_default(),
            self.0.capacity.unwrap_or_default(),
            self.0.facts.reserve_percent
        )
    }

    fn unsupported(&self) -> String {
        let PoolFact::Unsupported(sizes) = &self.0.facts.pool else {
            return "this machine has no huge pages of huge_page_size".to_owned();
        };
        if sizes.is_empty() {
            return "this kernel has no huge pages".to_owned();
        }
        let sizes: Vec<_> = sizes.iter().map(PageSize::to_string).collect();
        format!("this machine has no pages of {}, only of {}", self.page_size(), sizes.join(", "))
    }

    /// Whether a larger pool is what mends `cause`.
    fn mended_by_pool(&self, cause: Cause) -> bool {
        matches!(cause, Cause::PoolEmpty | Cause::PoolTooSmall | Cause::PoolTaken)
    }

    pub(super) fn mend(&self, cause: Cause) -> Option<String> {
        match cause {
            _ if self.could_land_now() => Some("Restart the server.".to_owned()),
            Cause::SysvSharedMemory => Some("Set shared_memory_type = mmap and restart the server.".to_owned()),
            Cause::PageSizeUnsupported => match &self.0.facts.pool {
                PoolFact::Unsupported(sizes) if !sizes.is_empty() => {
                    Some("Set huge_page_size = 0, the kernel's default size, and restart the server.".to_owned())
                }
                _ => Some("Set huge_pages = off, or boot a kernel that has huge pages.".to_owned()),
            },
            Cause::CgroupLimit => {
                let limit = self.reservation_limit()?;
                let wanted = self.wanted_of(limit)?;
                Some(sentence(&self.steps(&[raise(limit, wanted), "restart the server".to_owned()])))
            }
            Cause::Unknown => None,
            Cause::Disabled if self.0.does_not_fit() => None,
            _ if self.0.does_not_fit() => Some(match self.0.facts.huge_page_size?.times(self.room_for_this_server()) {
                Bytes(0) => {
                    "Set huge_pages = off, because others have all huge pages that this host can hold.".to_owned()
                }
                largest => format!(
                    "Reduce shared_buffers so that all of shared memory needs no more than {largest}, or set \
                     huge_pages = off."
                ),
            }),
            Cause::Disabled => {
                let run = format!("run \"{}\"", self.set_pool(self.0.to_land?)?);
                let steps = self.steps(&[run, "set huge_pages = try".to_owned(), "restart the server".to_owned()]);
                Some(format!("To have huge pages, {steps}."))
            }
            Cause::PoolEmpty | Cause::PoolTooSmall | Cause::PoolTaken => {
                let run = format!("run \"{}\"", self.set_pool(self.0.to_land?)?);
                Some(sentence(&self.steps(&[run, "restart the server".to_owned()])))
            }
        }
    }

    /// The steps to huge pages, the first of them to raise the fault-time limit that would kill the server there.
    fn steps(&self, steps: &[String]) -> String {
        let (limit, needed) = (self.fault_limit(), self.needed_bytes().unwrap_or_default());
        let limit = limit.filter(|limit| limit.limit < needed).map(|limit| raise(limit, needed));
        let steps: Vec<_> = limit.iter().chain(steps).map(String::as_str).collect();
        match steps.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, before)) => format!("{} and {last}", before.join(", ")),
            None => String::new(),
        }
    }

    fn room_for_this_server(&self) -> Pages {
        let others = self.0.share.map(|share| share.others).unwrap_or_default();
        self.0.capacity.unwrap_or_default().saturating_sub(others)
    }

    fn needed_bytes(&self) -> Option<Bytes> {
        Some(self.0.facts.huge_page_size?.times(self.0.needed?))
    }

    fn set_pool(&self, pages: Pages) -> Option<String> {
        let size = self.0.facts.huge_page_size?;
        let default = self.0.facts.meminfo.as_ref().and_then(|meminfo| meminfo.huge_page_size);
        Some(command::set_pool(size, default == Some(size), pages))
    }

    /// The pool falls short of what a restart needs (else it is a cgroup).
    fn pool_falls_short(&self) -> bool {
        self.0.share.is_none_or(|share| share.guaranteed < self.needed())
    }

    pub(super) fn what_a_restart_lacks(&self) -> String {
        match &self.0.facts.pool {
            PoolFact::Unsupported(..) => self.unsupported(),
            _ if self.0.facts.asked.sysv => "shared_memory_type = sysv can't have them".to_owned(),
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

    fn what_is_unknown(&self) -> String {
        let reason = match self.0.share {
            None => "what the pool has left, which can't be seen",
            Some(_) if self.pool_falls_short() => "surplus pages that the kernel may find or not",
            Some(_) => "cgroup limits that can't be seen from here",
        };
        format!("whether a restart gets huge pages depends on {reason}")
    }

    /// So that a restart keeps, or gets, huge pages.
    pub(super) fn keep(&self) -> Option<String> {
        if self.pool_falls_short() {
            if self.0.does_not_fit() {
                return self.mend(Cause::PoolTooSmall);
            }
            return Some(format!("Run \"{}\".", self.set_pool(self.0.to_land?)?));
        }
        let (limit, needed) = (self.reservation_limit()?, self.needed_bytes()?);
        let short = limit.room_without(self.own_bytes()) < needed;
        short.then_some(format!("Set {} to at least {} bytes.", limit.path, self.wanted_of(limit)?.0))
    }

    fn regressed(&self, loss: &Loss) -> String {
        let why = match self.0.cause {
            Some(cause) => self.why(cause),
            None => format!(": {}", self.what_a_restart_lacks()),
        };
        format!("{} has lost what it had before the start of {}: it {}{why}.", self.memory(), loss.at, loss.lost.what)
    }

    fn page_tables(&self) -> String {
        let meminfo = self.0.facts.meminfo.as_ref();
        let tables = meminfo.and_then(|meminfo| meminfo.page_tables).unwrap_or_default();
        let total = meminfo.and_then(|meminfo| meminfo.mem_total).unwrap_or_default();
        let percent = tables.0.saturating_mul(100).checked_div(total.0).unwrap_or_default();
        format!("Page tables take {tables}, which is {percent}% of this host's memory.")
    }

    fn waste(&self, needed: Pages) -> String {
        let nr = self.0.share.map(|share| share.persistent).unwrap_or_default();
        let idle = self.0.facts.huge_page_size.map_or(Bytes(0), |size| size.times(nr.saturating_sub(needed)));
        format!(
            "The pool has {nr} huge pages of {}, but {needed} are all that anybody running needs: {idle} lie idle.",
            self.page_size()
        )
    }
}
