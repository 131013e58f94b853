//! Instructions, if no steps are known that certainly lead to huge pages.

use crate::advice::message::status_text::{StatusText, is_of_pool};
use crate::advice::plan::{Start, UNLESS};
use crate::assessment::{Finding, Outlook, Severity};
use crate::model::{Cause, CrashRecovery, HugePages, NodePools, Pending, PoolFact};

impl StatusText<'_> {
    /// What else can be done about `finding`; `None` if nothing needs to be done.
    pub(in crate::advice) fn without_plan(&self, finding: &Finding) -> Option<String> {
        let (status, terms) = (self.0, self.terms());
        let facts = &status.facts;
        let is_warning = status.severity_of(finding.name()) >= Severity::Warning;
        let is_of_crash = *finding == Finding::CrashLoses
            || *finding == Finding::OutlookUnknown && status.outlook != Outlook::Unknown;
        let nodes = Start::of_restart(status).and_then(|start| start.pool_state.nodes);
        let has_few_nodes = nodes.as_ref().is_some_and(NodePools::is_restricted);
        // In huge pages, what a restart would lack is the cause.
        let of_restart = status.forecast.cause.filter(|_| status.outlook != Outlook::Hugetlb);
        let cause = if status.of_pending { of_restart } else { status.cause.or(of_restart) };
        let is_known = status.share.is_some()
            && status.capacity.is_some()
            && status.cause != Some(Cause::Unknown)
            && facts.pending != Pending::Unknown;
        let off = terms.setting(HugePages::Off);
        Some(match (finding, cause) {
            (Finding::AsRequested | Finding::LandingUnknown | Finding::HostMemoryUnknown, _)
            | (Finding::LimitHit { .. }, _) => return None,
            (Finding::PoolWasted { .. }, _) if !is_warning => return None,
            (Finding::PoolWasted { .. }, _) => format!("Reduce the pool{UNLESS}."),
            _ if is_of_crash && matches!(facts.crash_recovery, CrashRecovery::Refused(_)) => {
                "Set at least the same values as on the primary server, and restart the server.".to_owned()
            }
            (Finding::PageTables, _) => {
                "Reduce the number of processes, for example with a connection pooler.".to_owned()
            }
            _ if matches!(facts.pending, Pending::Refused(_)) => {
                "Correct the configuration on disk as the message says.".to_owned()
            }
            (_, Some(cause)) if cause == Cause::NodeLimit || is_of_pool(cause) && has_few_nodes => format!(
                "Before its next start give the NUMA nodes that the {} may use more huge pages (/sys/devices/system/node), or let it \
                 use more nodes (cpuset.mems, numactl).",
                terms.server
            ),
            (_, Some(Cause::PageSizeUnsupported))
                if facts.pool_state.pool == PoolFact::Unsupported(Vec::new()) =>
            {
                format!("Set {off}, or boot a kernel that has huge pages.")
            }
            (_, Some(cause)) if is_of_pool(cause) && status.does_not_fit() => {
                let place = if status.of_pending { " in the configuration" } else { "" };
                match status.by_others.zip(status.capacity).is_some_and(|(others, capacity)| others >= capacity.most) {
                    true => format!("Set {off}{place}: other processes hold all huge pages that this host can hold."),
                    false => format!("Reduce {} what this host can hold, or set {off}{place}.", terms.reduce),
                }
            }
            _ if status.of_pending && terms.compare.is_some() => terms.compare?.to_owned(),
            _ if !is_warning => return None,
            (Finding::RestartFails, _) => {
                let setting = terms.setting(HugePages::Try);
                format!("Set {setting}: then the {} starts, but in base pages.", terms.server)
            }
            (Finding::Regressed(loss), _) if !loss.lost.only_outlook() && status.cause.is_none() => {
                "Compare the huge page size of this start with the one before: the setting, and the kernel's default size."
                    .to_owned()
            }
            _ if is_known => format!("Let other processes give up huge pages or limits that they share, or set {off}."),
            _ => "What helps depends on what could not be determined.".to_owned(),
        })
    }
}
