//! The assessment of one server: everything that `SELECT * FROM hugepage_status` says, before it is put into words.

use crate::assess::{Finding, Forecast, NodeRoom, Outlook, Severity, Share, Threat, pool_share};
use crate::model::{Cause, Demand, Facts, HugePages, Landing, Pending, PoolState};
use crate::{Bytes, Pages};

/// Below this much shared memory, base pages are no more than a notice.
const MIN_WARNING_SIZE: Bytes = Bytes(1 << 30);

/// One server's status. `None` is "could not be known".
#[derive(Clone, Debug)]
pub struct Status {
    /// What it was worked out from.
    pub facts: Facts,
    /// Pages of `facts.huge_page_size` that the running segment has or would take.
    pub needed: Option<Pages>,
    /// Pages of the pool that this server has now.
    pub own: Pages,
    /// Of those needed, how many could not be had now; zero in huge pages.
    pub missing: Option<Pages>,
    /// Why it is not as asked; `None` if it is.
    pub cause: Option<Cause>,
    /// What the next start would get: with the configuration on disk, or after a crash with the running one, if that
    /// loses more.
    pub outlook: Outlook,
    /// The start that `outlook` speaks of.
    pub forecast: Forecast,
    /// Whether that is a start with other settings than the running ones.
    pub of_pending: bool,
    /// The pool the host should have, capped at what it can hold.
    pub recommended: Option<Pages>,
    /// The pool with which this server lands in huge pages beside all others, whether it fits the host or not.
    pub to_land: Option<Pages>,
    /// The largest pool that the host can hold.
    pub capacity: Option<Pages>,
    /// Who has what of the pool.
    pub share: Option<Share>,
    /// The gravest finding first.
    pub findings: Vec<(Severity, Finding)>,
}

impl Status {
    /// Works everything out.
    pub fn of(facts: Facts) -> Self {
        let landing = facts.landing();
        let ground = PoolState {
            huge_page_size: facts.huge_page_size,
            pool: facts.pool.clone(),
            limits: facts.limits.clone(),
            nodes: facts.nodes.clone(),
            lock_limit: facts.lock_limit,
        };
        let own = facts.own();
        let to_reserve = facts.segment.as_ref().map(|segment| segment.to_reserve);
        let after_a_crash = Forecast::of(&facts.asked, to_reserve, &ground, own);
        let needed = after_a_crash.needed;
        let pending = facts.forecast_of_pending(own);
        let wants = facts.wants_huge_pages();
        // Without huge pages now, a crash has nothing to lose.
        let crash_counts = |pending: &Forecast| {
            landing == Landing::Hugetlb && after_a_crash.outlook.gravity() > pending.outlook.gravity()
        };
        // The pool has to serve a crash before the restart as well as the restart.
        let most = [needed, facts.needed_pending()].into_iter().flatten().max();
        let (forecast, of_pending) = match pending {
            Some(pending) if !crash_counts(&pending) => (pending, true),
            _ => (after_a_crash, false),
        };

        let share = facts.pool.known().and_then(|pool| Share::of(pool, own));
        let by_others = share.map(|share| share.others.saturating_add(facts.others_lack));
        let to_land = by_others.zip(most).map(|(by_others, most)| by_others.saturating_add(most));
        let needed_by_all = if wants { to_land } else { by_others };
        let capacity = facts.capacity();
        let mut status = Self {
            missing: needed.and_then(|needed| facts.missing(needed)),
            cause: Cause::of(&facts, needed),
            outlook: forecast.outlook,
            forecast,
            of_pending,
            recommended: needed_by_all.zip(capacity).map(|(needed, capacity)| needed.min(capacity)),
            capacity,
            to_land,
            share,
            needed,
            own,
            findings: Vec::new(),
            facts,
        };
        status.findings = status.find(needed_by_all);
        status
    }

    /// The gravest severity and the finding that the message speaks of.
    pub fn verdict(&self) -> (Severity, &Finding) {
        self.findings.first().map_or((Severity::Ok, &Finding::AsAsked), |(severity, finding)| (*severity, finding))
    }

    /// How grave the finding of that name is, one of [`Finding::NAMES`]; `Ok` if it was not found.
    pub fn severity_of(&self, name: &str) -> Severity {
        let found = self.findings.iter().find(|(_, finding)| finding.name() == name);
        found.map_or(Severity::Ok, |(severity, _)| *severity)
    }

    /// What would take huge pages away, or the server down, though nothing has happened yet; the gravest first.
    pub fn threats(&self) -> Vec<Threat> {
        let threat = |finding: &Finding| match finding {
            Finding::CgroupBelowSegment => Some(Threat::CgroupLimit),
            Finding::SharedLimit => Some(Threat::SharedLimit),
            Finding::MemoryLimit => Some(Threat::MemoryLimit),
            Finding::RestartFails => Some(Threat::RestartFails),
            Finding::RestartLoses => Some(Threat::RestartLoses),
            _ => None,
        };
        self.findings.iter().filter_map(|(_, finding)| threat(finding)).collect()
    }

    /// Whether the pool that this server needs beside all others is more than the host can hold.
    pub fn does_not_fit(&self) -> bool {
        matches!((self.to_land, self.capacity), (Some(to_land), Some(capacity)) if to_land > capacity)
    }

    fn find(&self, needed_by_all: Option<Pages>) -> Vec<(Severity, Finding)> {
        let facts = &self.facts;
        let landing = facts.landing();
        let size = facts.segment_size().unwrap_or_default();
        let wants = facts.wants_huge_pages();
        let mut findings = Vec::new();

        for excess in self.excesses() {
            let finding = excess.kind.finding();
            if !findings.iter().any(|(_, found)| *found == finding) {
                findings.push((excess.severity, finding));
            }
        }
        if self.outlook == Outlook::Fails {
            findings.push((Severity::Critical, Finding::RestartFails));
        }
        if let Some(loss) = &facts.loss
            && (!loss.lost.only_outlook() || matches!(self.outlook, Outlook::Mixed | Outlook::Base))
        {
            findings.push((Severity::Warning, Finding::Regressed(loss.clone())));
        }
        match landing {
            Landing::Base | Landing::Mixed | Landing::PartialThp => {
                let severity = if wants && size >= MIN_WARNING_SIZE { Severity::Warning } else { Severity::Notice };
                findings.push((severity, Finding::BasePages(self.cause.unwrap_or(Cause::Unknown))));
            }
            Landing::Thp if wants => findings.push((Severity::Notice, Finding::TransparentHugePages)),
            Landing::Thp => findings.push((Severity::Notice, Finding::BasePages(Cause::Disabled))),
            Landing::Unknown => findings.push((Severity::Notice, Finding::LandingUnknown)),
            Landing::Hugetlb if matches!(self.outlook, Outlook::Mixed | Outlook::Base) => {
                findings.push((Severity::Warning, Finding::RestartLoses));
            }
            Landing::Hugetlb => {}
        }
        if facts.page_tables_exceed(10) {
            findings.push((Severity::Critical, Finding::PageTables));
        } else if facts.page_tables_exceed(5) {
            findings.push((Severity::Warning, Finding::PageTables));
        }
        if let (Some(needed), Some(share)) = (needed_by_all, self.share)
            && share.persistent > Pages(0)
            && share.persistent.0 >= needed.0.saturating_mul(2)
        {
            findings.push((Severity::Warning, Finding::PoolWasted { needed }));
        }
        if wants && self.outlook == Outlook::Unknown {
            findings.push((Severity::Notice, Finding::OutlookUnknown));
        }
        if let (Some(NodeRoom::Short(_)), true) = (self.needed.and_then(|needed| facts.node_room(needed)), wants) {
            let severity =
                if landing == Landing::Hugetlb || size >= MIN_WARNING_SIZE { Severity::Warning } else { Severity::Notice };
            findings.push((severity, Finding::NodeLimit));
        }
        // The sort is stable, so among equals the order above holds.
        findings.sort_by_key(|(severity, _)| std::cmp::Reverse(*severity));
        findings
    }
}

impl Facts {
    /// Whether the running settings, or those on disk, ask for huge pages.
    fn wants_huge_pages(&self) -> bool {
        let pending = match &self.pending {
            Pending::Changed(demand, _) => demand.asked.huge_pages,
            _ => self.asked.huge_pages,
        };
        self.asked.huge_pages != HugePages::Off || pending != HugePages::Off
    }

    /// Whether a start that asks for `demand` asks for what the running server has.
    pub fn is_met_by(&self, demand: &Demand) -> bool {
        let Some(segment) = &self.segment else { return false };
        let size = match (segment.landing, segment.page_size) {
            (Landing::Hugetlb, Some(page)) => page.times(page.pages_to_hold(demand.shared_memory)),
            _ => demand.shared_memory,
        };
        demand.asked == self.asked && size == segment.size
    }

    /// What a start with the configuration on disk would get; `None` if that is the running one.
    pub fn forecast_of_pending(&self, own: Pages) -> Option<Forecast> {
        Some(match &self.pending {
            Pending::Unchanged => return None,
            Pending::Changed(demand, ground) => {
                let own = if ground.huge_page_size == self.huge_page_size { own } else { Pages(0) };
                Forecast::of(&demand.asked, Some(demand.shared_memory), ground, own)
            }
            Pending::Refused(_) => Forecast::refused(),
            Pending::Unknown => Forecast::unknown(),
        })
    }

    /// The pages of `self.pool` that the configuration on disk needs.
    fn needed_pending(&self) -> Option<Pages> {
        match &self.pending {
            Pending::Changed(demand, ground)
                if ground.huge_page_size == self.huge_page_size && demand.asked.huge_pages != HugePages::Off =>
            {
                Some(self.huge_page_size?.pages_to_hold(demand.shared_memory))
            }
            _ => None,
        }
    }

    /// The pages of `page_size` that this host can hold at most.
    fn capacity(&self) -> Option<Pages> {
        let pool = self.pool.known()?;
        let meminfo = self.meminfo.as_ref()?;
        let in_pool = pool.page_size.times(pool.nr);
        let elsewhere = meminfo.hugetlb.map_or(Bytes(0), |hugetlb| hugetlb.saturating_sub(in_pool));
        Some(pool_share::capacity(meminfo.mem_total?, self.reserve_percent, elsewhere, pool.page_size))
    }

    /// How many of `needed` pages could not be mapped now.
    fn missing(&self, needed: Pages) -> Option<Pages> {
        if self.landing() == Landing::Hugetlb {
            return Some(Pages(0));
        }
        let pool = self.pool.known()?;
        let limits = self.limits.as_ref();
        let limit = limits.and_then(|limits| limits.tightest_reservation());
        let allowed = limit.map_or(Pages(u64::MAX), |limit| pool.page_size.pages_within(limit.room()));
        let on_nodes = match self.node_room(needed) {
            Some(NodeRoom::Short(pages)) => pages,
            _ => Pages(u64::MAX),
        };
        let nodes_known = self.node_room(needed) != Some(NodeRoom::Unknown);
        let had = self.own().saturating_add(pool.available()?.min(allowed)).min(on_nodes);
        let missing = needed.saturating_sub(had);
        let all_seen = nodes_known && limits.is_some_and(|limits| !limits.hidden_levels);
        // Limits that can't be seen can only make it more: a number is known to be short, none is not known to do.
        (missing > Pages(0) || all_seen).then_some(missing)
    }

    /// Whether the host's page tables take more than `percent` hundredths of its memory.
    fn page_tables_exceed(&self, percent: u32) -> bool {
        let meminfo = self.meminfo.as_ref();
        let tables = meminfo.and_then(|meminfo| meminfo.page_tables);
        let total = meminfo.and_then(|meminfo| meminfo.mem_total);
        matches!((tables, total), (Some(tables), Some(total)) if tables > total.percent(percent))
    }
}
