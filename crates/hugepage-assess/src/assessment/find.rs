//! Which findings an assessment has: one function for each.

use hugepage_facts::{Cause, Landing};
use hugepage_kernel::next_boot::PoolAtBoot;
use hugepage_kernel::{Bytes, CgroupLimits, Pages};

use crate::assessment::{AtBoot, Finding, Outlook, Severity, Status};
use crate::model::{HugePages, NodePools};

/// Below this much shared memory, base pages are only a notice.
pub const MIN_WARNING_SIZE: Bytes = Bytes(1 << 30);

type Rated = Option<(Severity, Finding)>;

impl Status {
    /// All findings, the most severe first; those of one severity in the order of this list.
    pub(super) fn find(&self) -> Vec<(Severity, Finding)> {
        let (facts, mut findings) = (&self.facts, Vec::new());
        let fails = self.forecast.outlook == Outlook::Fails && !facts.requested.is_automatic_asm();
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
            self.pool_wasted(),
            self.outlook_unknown(),
            self.node_limit(),
            facts
                .meminfo
                .is_of_lxcfs
                .then_some((Severity::Notice, Finding::HostMemoryUnknown)),
            self.boot_loses(),
            self.boot_unknown(),
            self.limit_hit(),
        ];
        findings.extend(others.into_iter().flatten());
        // The sort is stable.
        findings.sort_by_key(|(severity, _)| std::cmp::Reverse(*severity));
        findings
    }

    fn regressed(&self) -> Rated {
        let loss = self
            .facts
            .past
            .loss
            .as_ref()
            .filter(|_| self.cause != Some(Cause::Disabled))?;
        let stands = !loss.lost.only_outlook() || self.forecast.outlook.loses();
        stands.then(|| (Severity::Warning, Finding::Regressed(loss.clone())))
    }

    fn of_landing(&self) -> Rated {
        let requested = &self.facts.requested;
        Some(match self.facts.landing() {
            // Its default, and huge pages would gain nothing.
            Landing::Base if requested.is_automatic_asm() => return None,
            Landing::Base | Landing::Mixed | Landing::PartialThp => {
                // Off by choice until a restart, whatever the configuration on disk asks for.
                let is_part = self.facts.landing() == Landing::Mixed;
                let is_serious =
                    requested.huge_pages != HugePages::Off && (self.is_large() || is_part);
                let severity = Severity::warning_if(is_serious);
                (
                    severity,
                    Finding::BasePages(self.cause.unwrap_or(Cause::Unknown)),
                )
            }
            Landing::Thp => (Severity::Notice, Finding::TransparentHugePages),
            Landing::Unknown => (Severity::Notice, Finding::LandingUnknown),
            Landing::Hugetlb if self.forecast.outlook.loses() => {
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
        let meminfo = &self.facts.meminfo;
        let (tables, total) = (meminfo.page_tables?, meminfo.mem_total?);
        let severity = if tables > total.percent(10) {
            Severity::Critical
        } else {
            Severity::Warning
        };
        (tables > total.percent(5)).then_some((severity, Finding::PageTables))
    }

    fn pool_wasted(&self) -> Rated {
        let (facts, share) = (&self.facts, self.share?);
        // Whoever has a page, it is not unused, nor is it while another server lacks what does not fit.
        let not_unused = facts.strangers.pages.saturating_add(facts.others_beyond);
        let size = facts.pool_state.huge_page_size?;
        let limits = facts.pool_state.limits.as_ref();
        // A node without the pages that the manifest of its pod asks for does not get this pod again.
        let of_pod = size.pages_to_hold(limits.and_then(CgroupLimits::of_pod).unwrap_or_default());
        let needed = self.by_others?.saturating_add(of_pod);
        let needed = self.needed_by_all()?.max(needed).saturating_add(not_unused);
        // Pages of nodes that the server may not use are there for others.
        let nodes = facts.pool_state.nodes.as_ref();
        let of_nodes = nodes.and_then(NodePools::persistent);
        let persistent = of_nodes.unwrap_or(share.persistent);
        let idle = size.times(persistent.saturating_sub(needed));
        let meminfo = &facts.meminfo;
        let is_wasted = persistent > Pages(0)
            && (persistent.0 >= needed.0.saturating_mul(2) || meminfo.is_much(idle));
        // Whoever can't be seen may need these pages, but a host that lacks memory needs it now.
        let severity = Severity::warning_if(facts.knows_all_needs() || meminfo.lacks(idle));
        is_wasted.then_some((severity, Finding::PoolWasted { needed }))
    }

    fn outlook_unknown(&self) -> Rated {
        let of_crash = self.crash_outlook_apart() == Some(Outlook::Unknown) && !self.crash_by_start;
        let is_unknown = self.forecast.outlook == Outlook::Unknown || of_crash;
        let is_of_interest = self.facts.wants_huge_pages() || self.forecast.danger.is_some();
        (is_unknown && is_of_interest).then_some((Severity::Notice, Finding::OutlookUnknown))
    }

    fn node_limit(&self) -> Rated {
        let room = self.facts.start_again().node_room();
        let is_serious = self.facts.is_in_huge_pages() || self.is_large();
        let severity = Severity::warning_if(is_serious);
        (room.shortage().is_some() && self.facts.wants_huge_pages())
            .then_some((severity, Finding::NodeLimit))
    }

    fn boot_loses(&self) -> Rated {
        // A restart may lose it now: with the pool that a file sets, the first start after the next boot loses it as well.
        let is_told = |boot: &AtBoot| boot.file.is_some() && self.facts.is_in_huge_pages();
        let boot = self
            .at_boot()
            .filter(|boot| self.is_kept() || is_told(boot))?;
        let severity = match boot.smaller {
            Some(_) => Severity::Warning,
            None if boot.is_known && boot.pages < boot.needed => {
                Severity::warning_if(self.fails_at_boot(&boot))
            }
            None => return None,
        };
        Some((severity, Finding::BootLoses))
    }

    fn boot_unknown(&self) -> Rated {
        let severity = match self.facts.next_boot.as_ref().filter(|_| self.is_kept())? {
            PoolAtBoot::Unseen { has_systemd: true } => {
                Severity::warning_if(self.fails_at_boot(&self.at_boot()?))
            }
            PoolAtBoot::Unknown(_) => Severity::Notice,
            _ if self.at_boot().is_some_and(|boot| !boot.is_known) => Severity::Notice,
            _ => return None,
        };
        Some((severity, Finding::BootUnknown))
    }

    /// Whether there is something that the next boot may lose: a restart keeps it.
    fn is_kept(&self) -> bool {
        self.facts.is_in_huge_pages()
            && matches!(self.forecast.outlook, Outlook::Hugetlb | Outlook::Unknown)
    }

    fn limit_hit(&self) -> Rated {
        let (path, count) = self.facts.pool_state.limits.as_ref()?.refusals.clone()?;
        (count > 0).then_some((Severity::Notice, Finding::LimitHit { path, count }))
    }

    /// What a crash would get, if a finding of its own may be about it: of a server in huge pages, beside findings on the restart.
    fn crash_outlook_apart(&self) -> Option<Outlook> {
        let is_apart = self.of_pending || self.crash.outlook != self.forecast.outlook;
        self.crash_outlook()
            .filter(|_| is_apart && self.facts.is_in_huge_pages())
    }

    fn is_large(&self) -> bool {
        self.facts.segment_size().unwrap_or_default() >= MIN_WARNING_SIZE
    }
}
