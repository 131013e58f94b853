//! Clauses on why a segment is not in huge pages, or would not be after a restart.

use hugepage_kernel::Pages;

use crate::advice::message::pending::OF_RINGS;
use crate::advice::message::product::ProductTerms;
use crate::advice::message::status_text::{StatusText, is_of_pool, page_size, shortfall};
use crate::advice::pool;
use crate::assessment::limits::Excess;
use crate::assessment::{Finding, Forecast, NodeRoom, Outlook, Status};
use crate::model::{Cause, CrashRecovery, HugePages, LockLimit, Loss, Pending};

impl StatusText<'_> {
    /// What the restart after a crash lacks.
    pub fn crash_shortfall(&self) -> String {
        let Status { facts, crash, .. } = self.0;
        if let CrashRecovery::Unknown(why) = &facts.crash_recovery {
            return why.clone();
        }
        if let Some(error) = facts.crash_recovery.error() {
            return error;
        }
        if facts.requested.io_uring && crash.outlook == Outlook::Unknown {
            return OF_RINGS.to_owned();
        }
        self.lacked_by(&Forecast { cause: crash.cause.or(Some(Cause::Unknown)), ..crash.clone() })
    }

    /// What a restart lacks.
    pub fn shortfall(&self) -> String {
        let facts = &self.0.facts;
        let is_known = matches!(facts.pending, Pending::Changed(..) | Pending::Unchanged);
        shortfall(&self.0.forecast, is_known.then(|| facts.next_pool_state()), facts.requested.product)
    }

    /// What a start with the running settings lacks.
    fn lacked_by(&self, forecast: &Forecast) -> String {
        shortfall(forecast, Some(&self.0.facts.pool_state), self.0.facts.requested.product)
    }

    /// What the NUMA nodes that the server may use have for it.
    fn node_room(&self) -> Option<NodeRoom> {
        Some(self.0.facts.pool_state.node_room(self.0.needed?, self.0.own))
    }

    /// Behind "... is in 4 kB pages".
    pub fn reason(&self, cause: Cause) -> String {
        let needed = self.needed();
        let size = page_size(self.0.facts.pool_state.huge_page_size);
        let pool = self.0.facts.pool_state.pool.known();
        let nr = pool.map_or(Pages(0), |pool| pool.nr);
        let available = pool.and_then(|pool| pool.available()).unwrap_or_default().saturating_add(self.0.own);
        let missing = self.0.missing.unwrap_or_default();
        let are = if needed == Pages(1) { "is" } else { "are" };
        let reason = match cause {
            _ if self.could_land_now() => self.reason_at_start(cause),
            Cause::Disabled => return format!(" because {}{}", self.setting(), self.requested_on_disk()),
            Cause::PoolEmpty => format!("the pool of {size} pages is empty; {needed} {are} needed"),
            Cause::PoolTooSmall if available >= nr => {
                let s = if nr == Pages(1) { "" } else { "s" };
                format!("the pool has {nr} page{s} of {size}; {needed} {are} needed ({missing} missing)")
            }
            Cause::PoolTooSmall | Cause::PoolTaken => {
                let others = self.0.share.map(|share| share.others).unwrap_or_default();
                let holder =
                    self.0.facts.largest_holder.as_ref().map(|holder| holder.clause(others)).unwrap_or_default();
                format!(
                    "only {available} of the pool's {nr} pages of {size} are available; {needed} {are} needed ({missing} missing){holder}"
                )
            }
            Cause::CgroupLimit => {
                let room = self.0.facts.pool_state.room(self.0.own).unwrap_or_default();
                format!("a cgroup allows only {room} of the {} needed", self.needed_bytes().unwrap_or_default())
            }
            Cause::Unknown => "the cause could not be determined".to_owned(),
            cause => {
                let guaranteed = self.node_room().and_then(NodeRoom::shortage);
                self.lacked_by(&Forecast { cause: Some(cause), guaranteed, ..self.0.crash.clone() })
            }
        };
        if is_of_pool(cause) && self.0.does_not_fit() {
            let is_later = self.0.facts.needed_pending() > self.0.needed;
            let with = if is_later { " with the configuration on disk" } else { "" };
            format!(
                ": {reason}, and{with} a pool of {} pages exceeds the {}",
                self.0.to_land.unwrap_or_default(),
                self.0.capacity.map(pool::held).unwrap_or_default()
            )
        } else {
            format!(": {reason}")
        }
    }

    /// A sentence on the limit that `finding` speaks of, which is checked when a page is touched.
    pub fn exceeds(&self, finding: &Finding) -> String {
        let excess = self.0.excesses().into_iter().find(|excess| excess.finding() == *finding);
        let Some(Excess { is_shared, limit, need, size, is_now, .. }) = excess else { return String::new() };
        let what = match (is_shared, is_now) {
            (false, true) => {
                format!("{} is in huge pages, but a cgroup allows only {limit} of them", self.memory())
            }
            (false, false) => {
                format!("The next start needs {size} in huge pages, but a cgroup allows only {limit}")
            }
            (true, true) => {
                format!("The processes of a cgroup have reserved {need} in huge pages, but it allows only {limit}")
            }
            (true, false) => format!(
                "After the next start the processes of a cgroup will have reserved {need} in huge pages, but it allows \
                 only {limit}"
            ),
        };
        format!("{what}: a process that touches more is killed by SIGBUS, or its reads fail.")
    }

    /// Behind "because huge_pages = off", where the configuration on disk asks for huge pages.
    fn requested_on_disk(&self) -> String {
        match (&self.0.facts.pending, self.0.outlook) {
            (Pending::Unknown, _) => "; what the configuration on disk asks for is unknown".to_owned(),
            (Pending::Changed(demand, _), outlook) if demand.requested.huge_pages != HugePages::Off => match outlook {
                Outlook::Hugetlb => "; a restart with the configuration on disk would land in huge pages".to_owned(),
                _ => format!("; the configuration on disk asks for huge pages, but {}", self.shortfall()),
            },
            _ => String::new(),
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
        let size = page_size(self.0.facts.pool_state.huge_page_size);
        format!("{at_start} when the {server} started; all {needed} pages of {size} needed are available now")
    }

    /// What the next boot does to the pool.
    pub fn at_boot(&self) -> String {
        let Some(boot) = self.0.at_boot() else { return String::new() };
        let size = page_size(self.0.facts.pool_state.huge_page_size);
        let set = match &boot.file {
            Some(file) => format!("{file} sets {} pages of {size}", boot.pages),
            None => format!("no setting that was found reserves pages of {size} at boot"),
        };
        let (requested, server) = (self.0.facts.requested_next(), self.terms().server);
        let with = format!(", and with {} the {server} does not start without them", ProductTerms::current(&requested));
        let fails = if requested.huge_pages == HugePages::On { &*with } else { "" };
        match boot.server_lacks() {
            true if requested.asks_kernel() => {
                format!(
                    "After the next boot the {server} asks the kernel for the pages that it lacks, and may not get them: {set}."
                )
            }
            true if self.0.may_get_more(&boot) => {
                format!(
                    "After the next boot {} needs surplus pages, which the kernel may be unable to provide: {set}.",
                    self.terms().the_memory
                )
            }
            true => format!("{} is in {} until the next boot: {set}{fails}.", self.memory(), self.huge_pages()),
            false => format!("The pool is too small after the next boot: {set}, and {} are needed.", boot.needed),
        }
    }

    pub fn uncertainty(&self) -> String {
        let facts = &self.0.facts;
        // Or else a cgroup.
        let falls_short = self.0.share.is_none_or(|share| share.guaranteed < self.needed());
        let reason = match facts.pool_state.lock_limit {
            _ if self.0.share.is_none() => "the available pages of the pool, which are unknown",
            _ if falls_short && facts.requested.asks_kernel() => {
                "the kernel, which the instance asks for the pages that the pool lacks"
            }
            Some(LockLimit::Either { .. }) if !falls_short => {
                "this distribution's kernel: if it has the change of Linux 5.18, its owner must be in the group of \
                 vm.hugetlb_shm_group, else memlock is enough"
            }
            Some(LockLimit::Unexplained) if !falls_short => {
                "what refused its huge pages at the last start, when enough were available"
            }
            _ if facts.rings_may_hold_pages_of(&self.0.forecast) => {
                "pages that io_uring rings of earlier crashes may keep until the server stops"
            }
            _ if falls_short => "surplus pages, which the kernel may be unable to provide",
            _ if self.node_room() == Some(NodeRoom::Unknown) => {
                "the NUMA nodes of free pages, whose use by this server or by others could not be determined"
            }
            _ => "cgroup limits that are not visible from here",
        };
        format!("whether a restart gets huge pages depends on {reason}")
    }

    pub fn regressed(&self, loss: &Loss) -> String {
        let reason = match self.0.cause {
            Some(cause) => self.reason(cause),
            None if loss.lost.only_outlook() => format!(": {}", self.shortfall()),
            // Smaller huge pages than before, of which there are enough.
            None => String::new(),
        };
        format!("{} regressed at the start of {}: it {}{reason}.", self.memory(), loss.at_utc(), loss.lost)
    }

    pub fn page_tables(&self) -> String {
        let meminfo = self.0.facts.meminfo.as_ref();
        let tables = meminfo.and_then(|meminfo| meminfo.page_tables).unwrap_or_default();
        let total = meminfo.and_then(|meminfo| meminfo.mem_total).unwrap_or_default();
        let percent = tables.0.saturating_mul(100).checked_div(total.0).unwrap_or_default();
        format!("Page tables take {tables}, which is {percent}% of this host's memory.")
    }
}
