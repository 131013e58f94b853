//! The limits that one server exceeds, or will after its next start.

use hugepage_kernel::Bytes;

use crate::assessment::limits::{Excess, excesses};
use crate::assessment::{Finding, Outlook, Severity, Status};
use crate::model::Landing;

impl Status {
    /// The limits that the running segment exceeds, then those that the next start's will.
    pub fn excesses(&self) -> Vec<Excess> {
        let facts = &self.facts;
        let mut found = Vec::new();
        let own = facts.pool_state.huge_page_size.map_or(Bytes(0), |page| page.times(self.own));
        if let (Landing::Hugetlb, Some(limits)) = (facts.landing(), &facts.pool_state.limits) {
            found = excesses(limits, facts.segment_size().unwrap_or_default(), own);
        }
        let limits = facts.pending.pool_state().unwrap_or(&facts.pool_state).limits.as_ref();
        let size = self.forecast.huge_page_size.zip(self.forecast.needed).map(|(page, needed)| page.times(needed));
        let severity = match self.outlook {
            Outlook::Hugetlb | Outlook::Mixed => Severity::Critical,
            Outlook::Unknown => Severity::Warning,
            Outlook::Base | Outlook::Fails => return found,
        };
        let (Some(limits), Some(size)) = (limits, size) else { return found };
        let own = if self.forecast.huge_page_size == facts.pool_state.huge_page_size { own } else { Bytes(0) };
        for excess in excesses(limits, size, own) {
            let is_known = found.iter().any(|known| known.path == excess.path && known.need >= excess.need);
            if !is_known {
                found.push(Excess { is_now: false, severity: excess.severity.min(severity), ..excess });
            }
        }
        found
    }

    /// The first limit that the finding of that kind speaks of.
    pub fn excess_of(&self, finding: &Finding) -> Option<Excess> {
        self.excesses().into_iter().find(|excess| excess.kind.finding() == *finding)
    }
}
