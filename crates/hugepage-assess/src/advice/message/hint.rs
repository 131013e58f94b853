//! Instructions: how to get huge pages, or keep them.

use crate::advice::message::status_text::{StatusText, is_of_pool};
use crate::advice::plan::Plan;
use crate::assessment::{Finding, Outlook};
use crate::model::{Cause, CrashRecovery, HugePages, NodePools, Pending, PoolFact, Product};

impl StatusText<'_> {
    /// How to mend `finding`: a plan that is proved to help, else what else can be done.
    pub(in crate::advice) fn instruction(&self, finding: &Finding) -> Option<String> {
        match Plan::of_finding(self.0, finding) {
            Some(plan) => Some(plan.sentence(self.0)),
            None if self.0.of_pending => self.of_pending(),
            None => self.without_plan(),
        }
    }

    fn of_pending(&self) -> Option<String> {
        let nodes = match &self.0.facts.pending {
            Pending::Refused(_) => return Some("Correct the configuration on disk as the message says.".to_owned()),
            Pending::Changed(_, pool_state) => pool_state.nodes.as_ref(),
            _ => None,
        };
        match (self.0.forecast.cause, self.0.facts.requested.product) {
            (Some(cause), Product::PostgreSql) if is_of_nodes(cause, nodes) => Some(self.other_nodes()),
            (Some(cause), _) if is_of_pool(cause) && self.0.does_not_fit() => Some(format!(
                "Set {} in the configuration: other processes hold all huge pages that this host can hold.",
                self.terms().setting(HugePages::Off)
            )),
            (_, Product::PostgreSql) => None,
            _ => Some("Compare the parameter file with the running instance (SHOW SPPARAMETER).".to_owned()),
        }
    }

    fn other_nodes(&self) -> String {
        let terms = self.terms();
        format!(
            "Let the {} use more NUMA nodes (cpuset.mems, numactl) and restart it, or reduce {} what these nodes hold.",
            terms.server, terms.reduce
        )
    }

    fn without_plan(&self) -> Option<String> {
        let off = self.terms().setting(HugePages::Off);
        // In huge pages, what a restart would lack is the cause.
        let cause = self.0.cause.or_else(|| self.0.forecast.cause.filter(|_| self.0.outlook != Outlook::Hugetlb))?;
        if is_of_nodes(cause, self.0.facts.pool_state.nodes.as_ref()) {
            return Some(self.other_nodes());
        }
        match (self.0.cause?, &self.0.facts.pool_state.pool) {
            (Cause::PageSizeUnsupported, PoolFact::Unsupported(sizes)) if sizes.is_empty() => {
                Some(format!("Set {off}, or boot a kernel that has huge pages."))
            }
            (cause, _) if is_of_pool(cause) && self.0.does_not_fit() => {
                Some(format!("Set {off}: other processes hold all huge pages that this host can hold."))
            }
            _ => None,
        }
    }

    /// For a warning of which no steps are known that help for certain.
    pub(in crate::advice) fn without_steps(&self, finding: &Finding) -> String {
        let terms = self.terms();
        let is_known = self.0.share.is_some() && self.0.capacity.is_some() && self.0.cause != Some(Cause::Unknown);
        match finding {
            Finding::RestartFails => {
                let (setting, server) = (terms.setting(HugePages::Try), terms.server);
                format!("Set {setting}: then the {server} starts, but in base pages.")
            }
            Finding::Regressed(loss) if !loss.lost.only_outlook() && self.0.cause.is_none() => {
                "Compare the huge page size of this start with the one before: the setting, and the kernel's default size."
                    .to_owned()
            }
            Finding::PoolWasted { .. } => "Reduce the pool, unless a stopped server needs these pages.".to_owned(),
            _ if is_known => {
                let off = terms.setting(HugePages::Off);
                format!("Let other processes give up huge pages or limits that they share, or set {off}.")
            }
            _ => "See notes: what helps depends on what could not be determined.".to_owned(),
        }
    }

    /// So that a restart after a crash keeps huge pages.
    pub(in crate::advice) fn hint_on_crash(&self, finding: &Finding) -> Option<String> {
        if let CrashRecovery::Refused(_) = self.0.facts.crash_recovery {
            return Some("Set at least the same values as on the primary server, and restart the server.".to_owned());
        }
        self.instruction(finding)
    }
}

/// Whether `cause` is that the nodes which the server may use have too few pages.
fn is_of_nodes(cause: Cause, nodes: Option<&NodePools>) -> bool {
    cause == Cause::NodeLimit || is_of_pool(cause) && nodes.is_some_and(NodePools::is_restricted)
}
