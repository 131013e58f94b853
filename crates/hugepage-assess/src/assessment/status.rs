//! The assessment of one server: all that `SELECT * FROM hugepage_status` shows, before messages are made of it.

use hugepage_facts::Cause;
use hugepage_kernel::Pages;

use super::forecast::cause_of;
use crate::assessment::{Capacity, Finding, Forecast, Outlook, Severity, Share, Threat};
use crate::model::{CrashRecovery, Facts, HugePages, Pending};

/// One server's status. `None` is unknown.
#[derive(Clone, Debug)]
pub struct Status {
    /// The facts that it was calculated from.
    pub facts: Facts,
    /// The needed pages that are not available now; zero in huge pages.
    pub missing: Option<Pages>,
    /// Why the segment is not as asked; `None` if it is.
    pub cause: Option<Cause>,
    /// The restart with the configuration on disk.
    pub forecast: Forecast,
    /// Whether it has other settings than the running server.
    pub of_pending: bool,
    /// The restart of a server after a crash of one of its processes: with the running settings, so `needed` is what the running
    /// segment has or would take.
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
        let current = facts.current_start();
        let forecast = current.forecast(&facts.pending);
        let (crash, crash_by_start) = crash_of(&facts, current.forecast(&Pending::Unchanged));
        let pool = facts.pool();
        let share = facts.start_again().share();
        let by_others = share.map(|share| facts.by_others(share));
        // The pool must be large enough for crashes before the restart as well as for the restart.
        let most = crash.needed.max(facts.needed_pending());
        let to_land = by_others
            .zip(most)
            .map(|(others, most)| others.saturating_add(most));
        let mut status = Self {
            missing: facts.missing(),
            cause: cause_of(&facts),
            of_pending: facts.pending != Pending::Unchanged,
            forecast,
            crash,
            crash_by_start,
            recommended: None,
            by_others,
            capacity: pool.and_then(|pool| facts.capacity(pool)),
            to_land,
            share,
            findings: Vec::new(),
            facts,
        };
        status.refuse_beyond_capacity();
        status.recommended = status.recommend();
        status.findings = status.find();
        status
    }

    /// The pages that this server and all others need together.
    pub fn needed_by_all(&self) -> Option<Pages> {
        if self.facts.wants_huge_pages() {
            self.to_land
        } else {
            self.by_others
        }
    }

    /// The pool that the host should have. If what all need does not fit, this server counts with the smaller of what it runs with and
    /// what is on disk, and if not even that fits, with what it has.
    fn recommend(&self) -> Option<Pages> {
        let (facts, others, capacity) = (&self.facts, self.by_others?, self.capacity?);
        let with = |own: Pages| others.saturating_add(own);
        let demands = [self.crash.needed, facts.needed_pending()];
        let smaller = demands.into_iter().flatten().min().map(with);
        let counted = [Some(self.needed_by_all()?), smaller]
            .into_iter()
            .flatten()
            .find(|pages| *pages <= capacity.most)
            .unwrap_or(with(facts.own()));
        Some(capacity.recommended(counted, facts.pool()?, facts.strangers.pages))
    }

    /// Oracle asks the kernel for the pages that are missing, and not even the kernel has more than the host can hold.
    fn refuse_beyond_capacity(&mut self) {
        let requested = self.facts.requested_next();
        let is_unknown = self.forecast.outlook == Outlook::Unknown;
        if requested.asks_kernel() && is_unknown && self.does_not_fit() {
            self.forecast.outlook = match requested.huge_pages {
                HugePages::On => Outlook::Fails,
                HugePages::Off | HugePages::Try => Outlook::Mixed,
            };
        }
    }

    /// The highest severity, and the finding that the message reports.
    pub fn verdict(&self) -> (Severity, &Finding) {
        self.findings.first().map_or(
            (Severity::Ok, &Finding::AsRequested),
            |(severity, finding)| (*severity, finding),
        )
    }

    /// The severity of the finding with that name, one of [`Finding::NAMES`]; `Ok` if it was not found.
    pub fn severity_of(&self, name: &str) -> Severity {
        let found = self
            .findings
            .iter()
            .find(|(_, finding)| finding.name() == name);
        found.map_or(Severity::Ok, |(severity, _)| *severity)
    }

    /// What will take huge pages away or make a start fail, although nothing has happened yet; the most severe first.
    pub fn threats(&self) -> Vec<Threat> {
        let threat = |finding: &Finding| {
            Threat::ALL
                .into_iter()
                .find(|threat| threat.finding() == *finding)
        };
        self.findings
            .iter()
            .filter_map(|(_, finding)| threat(finding))
            .collect()
    }

    /// The threats, and [`Threat::CrashLoses`] also where the threat of the next start, a crash included, stands for it.
    pub fn warnings(&self) -> Vec<Threat> {
        let mut threats = self.threats();
        let is_lost = self.crash_by_start
            || matches!(
                self.crash_outlook(),
                Some(Outlook::Mixed | Outlook::Base | Outlook::Fails)
            );
        if is_lost && self.facts.is_in_huge_pages() && !threats.contains(&Threat::CrashLoses) {
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

impl Facts {
    /// What others than this server and strangers have of the pool, and what they lack.
    fn by_others(&self, share: Share) -> Pages {
        let held = share.others.saturating_sub(self.strangers.pages);
        held.saturating_add(self.others_lack.unwrap_or_default())
    }
}

/// The restart after a crash, and whether it is unknown because files have changed. `unchanged`: a restart with the running settings.
fn crash_of(facts: &Facts, unchanged: Forecast) -> (Forecast, bool) {
    let by_start = facts.hides_settings_of(&unchanged);
    let outlook = match facts.crash_recovery {
        CrashRecovery::Refused(_) => Outlook::Fails,
        CrashRecovery::Unknown(_) => Outlook::Unknown,
        CrashRecovery::Possible if by_start => Outlook::Unknown,
        CrashRecovery::Possible => unchanged.outlook,
    };
    let crash = Forecast {
        outlook,
        ..unchanged
    };
    (crash, by_start)
}
