//! Instructions: how to get huge pages, or keep them.

use hugepage_kernel::Pages;

use crate::advice::message::status_text::{StatusText, is_of_pool};
use crate::advice::plan::Plan;
use crate::assessment::{Outlook, io_uring};
use crate::model::{Cause, CrashRecovery, HugePages, NodePools, Pending, PoolFact, Product, RingAnswer};

impl StatusText<'_> {
    /// How to get huge pages or keep them: a remedy that is proved to help, else what else can be done.
    pub(in crate::advice) fn instruction(&self) -> Option<String> {
        match Plan::of_status(self.0) {
            Some(plan) => Some(plan.sentence(self.0)),
            None if self.0.of_pending => Some(self.of_pending()),
            None => self.without_plan(),
        }
    }

    fn of_pending(&self) -> String {
        if self.0.facts.requested.product != Product::PostgreSql {
            return match self.0.forecast.cause {
                Some(cause) if is_of_pool(cause) => {
                    "Reduce SGA_MAX_SIZE in the parameter file: the host cannot hold so many huge pages.".to_owned()
                }
                _ => "Compare the parameter file with the running instance (SHOW SPPARAMETER).".to_owned(),
            };
        }
        let nodes = match &self.0.facts.pending {
            Pending::Changed(_, pool_state) => pool_state.nodes.as_ref(),
            _ => None,
        };
        match self.0.forecast.cause {
            Some(Cause::IoUring) => "Set io_method = worker in the configuration.".to_owned(),
            Some(cause) if is_of_nodes(cause, nodes) => self.other_nodes(),
            Some(cause) if is_of_pool(cause) && self.0.outlook != Outlook::Unknown => {
                "See hugepage_recommendations for the largest value that fits: this host cannot hold so many huge pages."
                    .to_owned()
            }
            _ => "Call hugepage_preflight() for the details.".to_owned(),
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

    /// So that a restart after a crash keeps huge pages.
    pub(in crate::advice) fn hint_on_crash(&self) -> Option<String> {
        if let CrashRecovery::Refused(_) = self.0.facts.crash_recovery {
            return Some("Set at least the same values as on the primary server, and restart the server.".to_owned());
        }
        if self.0.facts.kept_at_crash.at_most == Pages(0) || self.0.crash.rings != RingAnswer::Granted {
            return self.instruction();
        }
        let worker_alone = |worker: &Plan| worker.sentence(self.0);
        let crashes = match io_uring::crashes_to_hold(self.0.facts.kept_at_crash) {
            1 => "one crash".to_owned(),
            crashes => format!("{crashes} crashes"),
        };
        match Plan::of_rings(self.0) {
            [Some(pool), Some(worker)] => {
                let (pool, worker) = (pool.sentence(self.0), worker.sentence(self.0));
                let enough = format!(", which is enough for {crashes}, or ");
                let mut characters = worker.chars();
                let first = characters.next()?.to_lowercase();
                Some(format!("{}{enough}{first}{}", pool.trim_end_matches('.'), characters.as_str()))
            }
            [Some(pool), None] => {
                let enough = format!(", which is enough for {crashes}.");
                Some(pool.sentence(self.0).trim_end_matches('.').to_owned() + &enough)
            }
            [None, worker] => worker.as_ref().map(worker_alone).or_else(|| self.instruction()),
        }
    }
}

/// Whether `cause` is that the nodes which the server may use have too few pages.
fn is_of_nodes(cause: Cause, nodes: Option<&NodePools>) -> bool {
    cause == Cause::NodeLimit || is_of_pool(cause) && nodes.is_some_and(NodePools::is_restricted)
}
