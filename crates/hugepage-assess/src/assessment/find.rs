//! Which findings an assessment has: one function for each.

use hugepage_kernel::{Bytes, Pages};

use crate::assessment::{Finding, Outlook, Severity, Status};
use crate::model::{Cause, HugePages, Landing, NodePools};

/// Below this much shared memory, base pages are only a notice.
pub const MIN_WARNING_SIZE: Bytes = Bytes(1 << 30);

type Rated = Option<(Severity, Finding)>;

impl Status {
    /// All findings, the most severe first; those of one severity in the order of this list.
    pub(super) fn find(&self, needed_by_all: Option<Pages>) -> Vec<(Severity, Finding)> {
        let (facts, mut findings) = (&self.facts, Vec::new());
        let fails = self.outlook == Outlook::Fails && !facts.requested.is_automatic_asm();
        let hides_memory = facts.meminfo.as_ref().is_some_and(|meminfo| meminfo.is_of_lxcfs);
        for excess in self.excesses() {
            let finding = excess.finding();
            if !findings.iter().any(|(_, found)| *found == finding) {
                findings.push((excess.severity, finding));
            }
        }
        let others = [
            fails.then_some((Severity::Critical, Finding::RestartFails)),
            self.regressed(),
            self.of_landing(),
            self.crash_loses(),
            self.page_tables(),
            self.pool_wasted(needed_by_all),
            self.outlook_unknown(),
            self.node_limit(),
            hides_memory.then_some((Severity::Notice, Finding::HostMemoryUnknown)),
            self.boot_loses(),
            self.limit_hit(),
        ];
        findings.extend(others.into_iter().flatten());
        // The sort is stable.
        findings.sort_by_key(|(severity, _)| std::cmp::Reverse(*severity));
        findings
    }

    fn regressed(&self) -> Rated {
        let loss = self.facts.past.loss.as_ref().filter(|_| self.cause != Some(Cause::Disabled))?;
        let stands = !loss.lost.only_outlook() || matches!(self.outlook, Outlook::Mixed | Outlook::Base);
        stands.then(|| (Severity::Warning, Finding::Regressed(loss.clone())))
    }

    fn of_landing(&self) -> Rated {
        let requested = &self.facts.requested;
        Some(match self.facts.landing() {
            // Its default, and huge pages would gain nothing.
            Landing::Base if requested.is_automatic_asm() => return None,
            Landing::Base | Landing::Mixed | Landing::PartialThp => {
                // Off by choice until a restart, whatever the configuration on disk asks for.
                let is_serious = requested.huge_pages != HugePages::Off && self.is_large();
                let severity = if is_serious { Severity::Warning } else { Severity::Notice };
                (severity, Finding::BasePages(self.cause.unwrap_or(Cause::Unknown)))
            }
            Landing::Thp if self.facts.wants_huge_pages() => (Severity::Notice, Finding::TransparentHugePages),
            Landing::Thp => (Severity::Notice, Finding::BasePages(Cause::Disabled)),
            Landing::Unknown => (Severity::Notice, Finding::LandingUnknown),
            Landing::Hugetlb if matches!(self.outlook, Outlook::Mixed | Outlook::Base) => {
                (Severity::Warning, Finding::RestartLoses)
            }
            Landing::Hugetlb => return None,
        })
    }

    fn crash_loses(&self) -> Rated {
        let severity = match self.crash_outlook_apart()? {
            Outlook::Fails => Severity::Critical,
            Outlook::Mixed | Outlook::Base => Severity::Warning,
            // It goes on in base pages with "try", and ends with "on": they are lost either way.
            Outlook::Unknown if self.crash_by_start && self.of_pending => Severity::Warning,
            _ => return None,
        };
        Some((severity, Finding::CrashLoses))
    }

    fn page_tables(&self) -> Rated {
        let meminfo = self.facts.meminfo.as_ref()?;
        let (tables, total) = meminfo.page_tables.zip(meminfo.mem_total)?;
        let severity = if tables > total.percent(10) { Severity::Critical } else { Severity::Warning };
        (tables > total.percent(5)).then_some((severity, Finding::PageTables))
    }

    fn pool_wasted(&self, needed_by_all: Option<Pages>) -> Rated {
        let (needed, share) = needed_by_all.zip(self.share)?;
        // Pages of nodes that the server may not use are there for others.
        let of_nodes = self.facts.pool_state.nodes.as_ref().and_then(NodePools::persistent);
        let persistent = of_nodes.unwrap_or(share.persistent);
        let is_wasted = persistent > Pages(0) && persistent.0 >= needed.0.saturating_mul(2);
        // Whoever can't be seen may need these pages.
        let severity = if self.facts.knows_all_needs() { Severity::Warning } else { Severity::Notice };
        is_wasted.then_some((severity, Finding::PoolWasted { needed }))
    }

    fn outlook_unknown(&self) -> Rated {
        let of_crash = self.crash_outlook_apart() == Some(Outlook::Unknown) && !self.crash_by_start;
        let is_unknown = self.outlook == Outlook::Unknown || of_crash;
        (is_unknown && self.facts.wants_huge_pages()).then_some((Severity::Notice, Finding::OutlookUnknown))
    }

    fn node_limit(&self) -> Rated {
        let room = self.facts.pool_state.node_room(self.needed?, self.own);
        let is_serious = self.facts.landing() == Landing::Hugetlb || self.is_large();
        let severity = if is_serious { Severity::Warning } else { Severity::Notice };
        (room.shortage().is_some() && self.facts.wants_huge_pages()).then_some((severity, Finding::NodeLimit))
    }

    fn boot_loses(&self) -> Rated {
        // What is not there, or a restart loses already, the next boot does not lose.
        let is_kept = matches!(self.outlook, Outlook::Hugetlb | Outlook::Unknown);
        let boot = self.at_boot().filter(|_| self.facts.landing() == Landing::Hugetlb && is_kept)?;
        let asks_on = self.facts.requested_next().huge_pages == HugePages::On;
        let is_serious = boot.server_lacks() && asks_on && !self.may_get_more(&boot);
        let severity = if is_serious { Severity::Warning } else { Severity::Notice };
        (boot.pages < boot.needed).then_some((severity, Finding::BootLoses))
    }

    fn limit_hit(&self) -> Rated {
        let (path, count) = self.facts.pool_state.limits.as_ref()?.refusals.clone()?;
        (count > 0).then_some((Severity::Notice, Finding::LimitHit { path, count }))
    }

    /// What a crash would get, if a finding of its own may be about it: of a server in huge pages, beside findings on the restart.
    fn crash_outlook_apart(&self) -> Option<Outlook> {
        let is_apart = self.of_pending || self.crash.outlook != self.outlook;
        self.crash_outlook().filter(|_| is_apart && self.facts.landing() == Landing::Hugetlb)
    }

    fn is_large(&self) -> bool {
        self.facts.segment_size().unwrap_or_default() >= MIN_WARNING_SIZE
    }
}
