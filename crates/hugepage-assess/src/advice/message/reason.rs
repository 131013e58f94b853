//! Clauses on why a segment is not in huge pages, or would not be after a restart.

use hugepage_facts::{Cause, Loss};
use hugepage_kernel::Pages;
use hugepage_kernel::next_boot::{PoolAtBoot, TOLD};

use crate::advice::message::ProductTerms;
use crate::advice::message::status_text::{StatusText, is_of_pool, of_permission, shortfall};
use crate::advice::pool;
use crate::assessment::limits::Excess;
use crate::assessment::{Finding, Forecast, NodeRoom, Outlook, Status};
use crate::model::{CrashRecovery, HugePages, LockLimit, Pending};

impl StatusText<'_> {
    /// What the restart after a crash lacks.
    pub fn crash_shortfall(&self) -> String {
        let Status { facts, crash, .. } = self.status;
        if let CrashRecovery::Unknown(why) = &facts.crash_recovery {
            return why.clone();
        }
        if let Some(error) = facts.crash_recovery.error() {
            return error;
        }
        self.lacked_by(&Forecast {
            cause: crash.cause.or(Some(Cause::Unknown)),
            ..crash.clone()
        })
    }

    /// What a restart lacks.
    pub fn shortfall(&self) -> String {
        let found = self.facts.start_next().map(|start| start.pool_state);
        shortfall(&self.status.forecast, found, self.facts.requested.product)
    }

    /// What a start with the running settings lacks.
    fn lacked_by(&self, forecast: &Forecast) -> String {
        shortfall(
            forecast,
            Some(&self.facts.pool_state),
            self.facts.requested.product,
        )
    }

    /// Behind "... is in 4 kB pages".
    pub fn reason(&self, cause: Cause) -> String {
        let needed = self.needed();
        let size = self.page_size();
        let pool = self.facts.pool();
        let nr = pool.map_or(Pages(0), |pool| pool.nr);
        let available = pool
            .and_then(|pool| pool.available())
            .unwrap_or_default()
            .saturating_add(self.facts.own());
        let missing = self.status.missing.unwrap_or_default();
        let are = if needed == Pages(1) { "is" } else { "are" };
        let reason = match cause {
            _ if self.could_land_now() => self.reason_at_start(cause),
            Cause::Disabled => {
                return format!(" because {}{}", self.setting(), self.requested_on_disk());
            }
            Cause::PoolEmpty => format!("the pool of {size} pages is empty; {needed} {are} needed"),
            Cause::PoolTooSmall if available >= nr => {
                let s = if nr == Pages(1) { "" } else { "s" };
                format!(
                    "the pool has {nr} page{s} of {size}; {needed} {are} needed ({missing} missing)"
                )
            }
            Cause::PoolTooSmall | Cause::PoolTaken => {
                let others = self
                    .status
                    .share
                    .map(|share| share.others)
                    .unwrap_or_default();
                let holder = self
                    .facts
                    .largest_holder
                    .as_ref()
                    .map(|holder| holder.clause(others))
                    .unwrap_or_default();
                format!(
                    "only {available} of the pool's {nr} pages of {size} are available; {needed} {are} needed ({missing} missing){holder}"
                )
            }
            Cause::CgroupLimit => {
                let room = self.facts.start_again().room().unwrap_or_default();
                format!(
                    "a cgroup allows only {room} of the {} needed",
                    self.needed_bytes().unwrap_or_default()
                )
            }
            Cause::Unknown => "the cause could not be determined".to_owned(),
            cause => {
                let guaranteed = self.facts.start_again().node_room().shortage();
                self.lacked_by(&Forecast {
                    cause: Some(cause),
                    guaranteed,
                    danger: None,
                    ..self.status.crash.clone()
                })
            }
        };
        // The segments that memlock lets it have come first, and then those that the pool lacks.
        let needed = self.needed_bytes().unwrap_or_default();
        let limit = self.facts.pool_state.lock_limit;
        let is_cause = |limit: &LockLimit| limit.refuses(needed) && !limit.prevents_start();
        let limit = limit.filter(|limit| is_of_pool(cause) && is_cause(limit));
        let of_limit = limit.map(|limit| of_permission(limit.cause(), Some(limit), needed));
        let reason = of_limit.map_or(reason.clone(), |text| format!("{text}; {reason}"));
        if is_of_pool(cause) && self.status.does_not_fit() {
            let is_later = self.facts.needed_pending() > self.status.crash.needed;
            let with = if is_later {
                " with the configuration on disk"
            } else {
                ""
            };
            format!(
                ": {reason}, and{with} a pool of {} pages exceeds the {}",
                self.status.to_land.unwrap_or_default(),
                self.status.capacity.map(pool::held).unwrap_or_default()
            )
        } else {
            format!(": {reason}")
        }
    }

    /// A sentence on the limit that `finding` speaks of, which is checked when a page is touched.
    pub fn exceeds(&self, finding: &Finding) -> String {
        let excess = self
            .status
            .excesses()
            .into_iter()
            .find(|excess| excess.finding() == *finding);
        let Some(Excess {
            is_shared,
            limit,
            need,
            size,
            is_now,
            ..
        }) = excess
        else {
            return String::new();
        };
        let what = match (is_shared, is_now) {
            (false, true) => {
                format!(
                    "{} is in huge pages, but a cgroup allows only {limit} of them",
                    self.memory()
                )
            }
            (false, false) => {
                format!(
                    "The next start needs {size} in huge pages, but a cgroup allows only {limit}"
                )
            }
            (true, true) => {
                format!(
                    "The processes of a cgroup have reserved {need} in huge pages, but it allows only {limit}"
                )
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
        match (&self.facts.pending, self.status.forecast.outlook) {
            (Pending::Unknown, _) => {
                "; what the configuration on disk asks for is unknown".to_owned()
            }
            (Pending::Changed(demand, _), outlook)
                if demand.requested.huge_pages != HugePages::Off =>
            {
                match outlook {
                    Outlook::Hugetlb => {
                        "; a restart with the configuration on disk would land in huge pages"
                            .to_owned()
                    }
                    _ => format!(
                        "; the configuration on disk asks for huge pages, but {}",
                        self.shortfall()
                    ),
                }
            }
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
        let (server, needed) = (self.terms.server, self.needed());
        let size = self.page_size();
        format!(
            "{at_start} when the {server} started; all {needed} pages of {size} needed are available now"
        )
    }

    /// What the next boot does to the pool.
    pub fn at_boot(&self) -> String {
        let size = self.page_size();
        let set = match self.facts.next_boot.as_ref() {
            Some(PoolAtBoot::Set(pages, file)) => {
                let on_nodes = if self.facts.pool_state.is_kept_from_nodes() {
                    ", spread over all NUMA nodes"
                } else {
                    ""
                };
                format!("{file} sets {pages} pages of {size}{on_nodes}")
            }
            Some(PoolAtBoot::Remembered(pages)) => {
                format!("the last boot left {pages} pages of {size}")
            }
            Some(PoolAtBoot::Told(pages, who)) => {
                format!("{TOLD} says that {who} sets {pages} pages of {size}")
            }
            Some(PoolAtBoot::Made { pages, .. }) => format!(
                "hugepage-reserve.service left {pages} pages of {size}, and counts the servers anew"
            ),
            Some(PoolAtBoot::Unset) => {
                format!("the last boot left no pages of {size}, and nothing seen sets them")
            }
            unknown => unknown
                .and_then(PoolAtBoot::unknown)
                .unwrap_or_default()
                .to_owned(),
        };
        let (requested, server) = (self.facts.requested_next(), self.terms.server);
        let with = format!(
            ", and with {} the {server} does not start without them",
            ProductTerms::current(&requested)
        );
        let boot = self.status.at_boot();
        let kept = format!("{} is in {}", self.memory(), self.huge_pages());
        if let Some((smaller, file)) = boot.as_ref().and_then(|boot| boot.smaller.as_ref()) {
            return format!(
                "{kept} until somebody runs \"sysctl --system\", as scripts of packages do: {file} sets {smaller} pages of {size}, fewer than hugepage-reserve.service left."
            );
        }
        let fails = match &boot {
            Some(boot) if self.status.fails_at_boot(boot) => &*with,
            _ => "",
        };
        let Some(boot) = boot.as_ref().filter(|boot| boot.is_known) else {
            return format!("{kept}, but what the next boot gives is unknown: {set}{fails}.");
        };
        match boot.server_lacks() {
            true if requested.asks_kernel() => {
                format!(
                    "After the next boot the {server} asks the kernel for the pages that it lacks, and may not get them: {set}."
                )
            }
            true if self.status.may_get_more(boot) => {
                format!(
                    "After the next boot {} needs surplus pages, which the kernel may be unable to provide: {set}.",
                    self.terms.the_memory
                )
            }
            true if boot.by_server <= self.needed() => {
                format!("{kept} until the next boot: {set}{fails}.")
            }
            // More than it has now.
            _ => format!(
                "The pool is too small after the next boot: {set}, and {} are needed{fails}.",
                boot.needed
            ),
        }
    }

    pub fn uncertainty(&self) -> String {
        let facts = self.facts;
        let forecast = &self.status.forecast;
        if forecast.obstacle().is_some() || forecast.depends_on_rings {
            return format!(
                "whether a restart succeeds is unknown: {}",
                self.shortfall()
            );
        }
        // Or else a cgroup.
        let falls_short = self
            .status
            .share
            .is_none_or(|share| share.guaranteed < self.needed());
        let reason = match facts.pool_state.lock_limit {
            _ if self.status.share.is_none() => {
                "the available pages of the pool, which are unknown"
            }
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
            _ if falls_short => "surplus pages, which the kernel may be unable to provide",
            _ if facts.start_again().node_room() == NodeRoom::Unknown => {
                "the NUMA nodes of free pages, whose use by this server or by others could not be determined"
            }
            _ => "cgroup limits that are not visible from here",
        };
        format!("whether a restart gets huge pages depends on {reason}")
    }

    pub fn regressed(&self, loss: &Loss) -> String {
        let reason = match self.status.cause {
            Some(cause) => self.reason(cause),
            None if loss.lost.only_outlook() => format!(": {}", self.shortfall()),
            // Smaller huge pages than before, of which there are enough.
            None => String::new(),
        };
        format!(
            "{} regressed at the start recorded at {}: it {}{reason}.",
            self.memory(),
            loss.at_utc(),
            loss.lost
        )
    }

    pub fn page_tables(&self) -> String {
        let meminfo = &self.facts.meminfo;
        let tables = meminfo.page_tables.unwrap_or_default();
        let total = meminfo.mem_total.unwrap_or_default();
        let percent = tables
            .0
            .saturating_mul(100)
            .checked_div(total.0)
            .unwrap_or_default();
        format!("Page tables take {tables}, which is {percent}% of this host's memory.")
    }
}
