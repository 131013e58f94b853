//! The assessment of one server: all that `SELECT * FROM hugepage_status` shows, before messages are made of it.

use hugepage_kernel::Pages;
use hugepage_kernel::memory::pool::Pool;

use crate::assessment::{Capacity, Finding, Forecast, Outlook, Severity, Share, Threat};
use crate::model::{Cause, CrashRecovery, Facts, HugePages, Landing};

/// One server's status. `None` is unknown.
#[derive(Clone, Debug)]
pub struct Status {
    /// The facts that it was calculated from.
    pub facts: Facts,
    /// Pages of `facts.pool_state.huge_page_size` that the running segment has or would take.
    pub needed: Option<Pages>,
    /// Pages of the pool that this server has now.
    pub own: Pages,
    /// The needed pages that are not available now; zero in huge pages.
    pub missing: Option<Pages>,
    /// Why the segment is not as asked; `None` if it is.
    pub cause: Option<Cause>,
    /// What a restart with the configuration on disk would get.
    pub outlook: Outlook,
    /// The restart with the configuration on disk.
    pub forecast: Forecast,
    /// Whether it has other settings than the running server.
    pub of_pending: bool,
    /// The restart of a server after a crash of one of its processes: with the running settings.
    pub crash: Forecast,
    /// Whether that is unknown because files have changed since the start, whose settings decide.
    pub crash_by_start: bool,
    /// The pool that the host should have, as [`Capacity::recommended`] defines it. Servers that can't be seen are not in it.
    pub recommended: Option<Pages>,
    /// The pages that all others have but strangers, and those that they lack as far as they can be seen.
    pub by_others: Option<Pages>,
    /// The pool with which this server lands in huge pages beside all others but strangers, even if it does not fit into the host.
    pub to_land: Option<Pages>,
    /// The largest pool that the host can hold.
    pub capacity: Option<Capacity>,
    /// How the pool is divided.
    pub share: Option<Share>,
    /// The most severe finding first.
    pub findings: Vec<(Severity, Finding)>,
}

impl Status {
    /// Calculates everything.
    pub fn assess(facts: Facts) -> Self {
        let own = facts.own();
        let to_reserve = facts.segment.as_ref().map(|segment| segment.to_reserve);
        let unchanged = Forecast::of_start(&facts.requested, to_reserve, &facts.pool_state, own);
        let pending = facts.pending.forecast(facts.pool_state.huge_page_size, own);
        let (crash, crash_by_start) = crash_of(&facts, &unchanged);
        let needed = unchanged.needed;
        let of_pending = pending.is_some();
        let forecast = match facts.beside_old_rings(pending.unwrap_or(unchanged)) {
            // The kernel may refuse the rings.
            restart if restart.outlook == Outlook::Hugetlb && facts.pending.asks_for_rings() => {
                Forecast { outlook: Outlook::Unknown, ..restart }
            }
            restart => restart,
        };

        let strangers = facts.strangers.pages;
        let pool = facts.pool_state.pool.known();
        let share = pool.and_then(|pool| Share::of_server(pool, own));
        let others_lack = facts.others_lack.unwrap_or_default();
        let by_others = share.map(|share| share.others.saturating_sub(strangers).saturating_add(others_lack));
        let with = |pages: Option<Pages>| Some(by_others?.saturating_add(pages?));
        // The pool must be large enough for crashes before the restart as well as for the restart.
        let to_land = with([needed, facts.needed_pending()].into_iter().flatten().max());
        let needed_by_all = if facts.wants_huge_pages() { to_land } else { by_others };
        let capacity = pool.and_then(|pool| facts.capacity(pool));
        // A server that does not fit counts with the smaller of what it runs with and what is on disk, or with what it has.
        let fits = |pages: &Pages| capacity.is_none_or(|capacity| *pages <= capacity.most);
        let least = [needed, facts.needed_pending()].into_iter().flatten().min();
        let counted = needed_by_all.filter(fits).or(with(least).filter(fits)).or(with(Some(own)));
        let counted = needed_by_all.and(counted);
        let recommend = |pool: &Pool| Some(capacity?.recommended(counted?, pool, strangers));
        let mut status = Self {
            missing: needed.and_then(|needed| facts.missing(needed)),
            cause: Cause::of_server(&facts, needed),
            outlook: forecast.outlook,
            forecast,
            of_pending,
            crash,
            crash_by_start,
            recommended: pool.and_then(recommend),
            by_others,
            capacity,
            to_land,
            share,
            needed,
            own,
            findings: Vec::new(),
            facts,
        };
        status.refuse_beyond_capacity();
        // Whoever has a page, it is not unused, nor is it while another server lacks what does not fit.
        let not_unused = strangers.saturating_add(status.facts.others_beyond);
        status.findings = status.find(needed_by_all.map(|needed| needed.saturating_add(not_unused)));
        status
    }

    /// Oracle asks the kernel for the pages that are missing, and not even the kernel has more than the host can hold.
    fn refuse_beyond_capacity(&mut self) {
        let requested = self.facts.requested_next();
        if requested.asks_kernel() && self.outlook == Outlook::Unknown && self.does_not_fit() {
            let refused = if requested.huge_pages == HugePages::On { Outlook::Fails } else { Outlook::Mixed };
            (self.outlook, self.forecast.outlook) = (refused, refused);
        }
    }

    /// The highest severity, and the finding that the message reports.
    pub fn verdict(&self) -> (Severity, &Finding) {
        self.findings.first().map_or((Severity::Ok, &Finding::AsRequested), |(severity, finding)| (*severity, finding))
    }

    /// The severity of the finding with that name, one of [`Finding::NAMES`]; `Ok` if it was not found.
    pub fn severity_of(&self, name: &str) -> Severity {
        let found = self.findings.iter().find(|(_, finding)| finding.name() == name);
        found.map_or(Severity::Ok, |(severity, _)| *severity)
    }

    /// What will take huge pages away or make a start fail, although nothing has happened yet; the most severe first.
    pub fn threats(&self) -> Vec<Threat> {
        let threat = |finding: &Finding| Threat::ALL.into_iter().find(|threat| threat.finding() == *finding);
        self.findings.iter().filter_map(|(_, finding)| threat(finding)).collect()
    }

    /// The threats, and [`Threat::CrashLoses`] also where the threat of the next start, a crash included, stands for it.
    pub fn warnings(&self) -> Vec<Threat> {
        let mut threats = self.threats();
        let is_lost = self.crash_by_start
            || matches!(self.crash_outlook(), Some(Outlook::Mixed | Outlook::Base | Outlook::Fails));
        if is_lost && self.facts.landing() == Landing::Hugetlb && !threats.contains(&Threat::CrashLoses) {
            threats.push(Threat::CrashLoses);
        }
        threats
    }

    /// Whether the pool that this server needs beside all others is more than the host can hold.
    pub fn does_not_fit(&self) -> bool {
        matches!((self.to_land, self.capacity), (Some(to_land), Some(capacity)) if to_land > capacity.most)
    }

    /// What the restart after a crash of one process would get; `None` for a server that does not restart itself.
    pub fn crash_outlook(&self) -> Option<Outlook> {
        (!self.facts.requested.is_oracle()).then_some(self.crash.outlook)
    }
}

/// The restart after a crash, and whether it is unknown because files have changed. `unchanged`: a restart with the running settings.
fn crash_of(facts: &Facts, unchanged: &Forecast) -> (Forecast, bool) {
    let by_start = facts.hides_settings_of(unchanged);
    let outlook = match facts.crash_recovery {
        CrashRecovery::Refused(_) => Outlook::Fails,
        CrashRecovery::Unknown(_) => Outlook::Unknown,
        CrashRecovery::Possible if by_start || facts.may_keep_rings(unchanged) => Outlook::Unknown,
        CrashRecovery::Possible => unchanged.outlook,
    };
    (Forecast { outlook, ..unchanged.clone() }, by_start)
}
