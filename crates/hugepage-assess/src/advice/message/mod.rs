//! One sentence on the state of a server and one on what to do, for its most severe finding.

pub mod pending;
pub mod product;
mod reason;
pub(super) mod status_text;

pub use product::ProductTerms;
pub use status_text::{OF_RINGS, is_of_pool, obstacle, of_permission, shortfall};

use hugepage_facts::Cause;

use crate::advice::message::status_text::StatusText;
use crate::advice::plan::{Plan, UNLESS};
use crate::advice::pool;
use crate::assessment::{Finding, Outlook, Severity, Status};
use crate::model::{CrashRecovery, HugePages, Pending, PoolFact, Product};

/// One finding with all that is said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingText {
    /// The name, one of [`Finding::NAMES`].
    pub name: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The state.
    pub message: String,
    /// What to do; `None` if nothing that is known here helps.
    pub hint: Option<String>,
}

/// All findings, the most severe first; none if all is as requested.
pub fn findings(status: &Status) -> Vec<FindingText> {
    let text = |(severity, finding): &(Severity, Finding)| FindingText {
        name: finding.name(),
        severity: *severity,
        message: of_finding(status, finding),
        hint: hint_of_finding(status, finding),
    };
    status.findings.iter().map(text).collect()
}

/// The state, by the most severe finding.
pub fn message(status: &Status) -> String {
    of_finding(status, status.verdict().1)
}

/// The state, by `finding`: a table with a sentence for each.
pub fn of_finding(status: &Status, finding: &Finding) -> String {
    let text = StatusText::new(status);
    let (memory, pages) = (text.memory(), text.current_pages());
    match finding {
        Finding::AsRequested if status.facts.requested.is_automatic_asm() => {
            format!(
                "{memory} is in files of /dev/shm, the default of ASM, which huge pages would not improve."
            )
        }
        Finding::AsRequested => format!(
            "{memory} is in {}, and a restart keeps them.",
            text.huge_pages()
        ),
        Finding::CgroupBelowSegment | Finding::SharedLimit => text.exceeds(finding),
        Finding::NodeLimit => format!("{memory} is in {pages}{}.", text.reason(Cause::NodeLimit)),
        Finding::OutlookUnknown if status.forecast.outlook != Outlook::Unknown => format!(
            "{memory} is in huge pages, but whether a crash of one process keeps them is unknown: {}.",
            text.crash_shortfall()
        ),
        Finding::CrashLoses => {
            let what = match status.crash.outlook {
                Outlook::Fails => "the restart after a crash of one process would fail",
                _ => "a crash of one process would lose them",
            };
            format!(
                "{memory} is in huge pages, but {what}: {}.",
                text.crash_shortfall()
            )
        }
        Finding::RestartFails => pending::fails(status),
        Finding::RestartLoses | Finding::OutlookUnknown if status.of_pending => {
            pending::message(status)
        }
        Finding::RestartLoses => {
            let them = if status.forecast.outlook == Outlook::Mixed {
                "a part of them"
            } else {
                "them"
            };
            // The restart alone where a crash does not lose them, or may not.
            let restart = if status.crash.outlook == status.forecast.outlook {
                text.terms.restart
            } else {
                "a restart"
            };
            format!(
                "{memory} is in huge pages, but {restart} would lose {them}: {}.",
                text.shortfall()
            )
        }
        Finding::Regressed(loss) => text.regressed(loss),
        Finding::BasePages(cause) => format!(
            "{memory} is in {}{}.",
            text.base_pages(),
            text.reason(*cause)
        ),
        Finding::TransparentHugePages => format!(
            "{memory} is in transparent huge pages, which are not reserved: swap may split them, and they are gone after a restart."
        ),
        Finding::PageTables => text.page_tables(),
        Finding::PoolWasted { needed } => pool::waste(status, *needed),
        Finding::HostMemoryUnknown => format!(
            "{memory} is in {pages}, but the page tables and the memory of the host are unknown: lxcfs shows those of a container."
        ),
        Finding::LimitHit { path, count } => format!(
            "{memory} is in {pages}, but a limit has refused huge pages to processes of its control group ({path}: {}{count}).",
            if path.ends_with("events") { "max " } else { "" }
        ),
        Finding::BootLoses | Finding::BootUnknown => text.at_boot(),
        Finding::LandingUnknown => "The pages of shared memory could not be determined.".to_owned(),
        Finding::OutlookUnknown => format!("{memory} is in {pages}, but {}.", text.uncertainty()),
    }
}

/// What to do; `None` if nothing needs to be done, or nothing that is known here would make it better.
pub fn hint(status: &Status) -> Option<String> {
    hint_of_finding(status, status.verdict().1)
}

/// What to do about `finding`, as of [`hint`].
pub fn hint_of_finding(status: &Status, finding: &Finding) -> Option<String> {
    let hint = match Plan::of_finding(status, finding) {
        Some(plan) => plan.sentence(status, finding),
        None => StatusText::new(status).without_plan(finding)?,
    };
    let facts = &status.facts;
    let given_fewer = match (facts.requested.product, &facts.next_boot, facts.pool()) {
        (Product::Oracle { .. }, Some(at_boot), Some(pool)) => {
            pool::given_fewer(at_boot, pool.persistent())
        }
        _ => None,
    };
    Some(pool::hint(hint, given_fewer))
}

impl StatusText<'_> {
    /// What else can be done about `finding`; `None` if nothing needs to be done.
    pub fn without_plan(&self, finding: &Finding) -> Option<String> {
        let (status, terms) = (self.status, self.terms);
        let facts = &status.facts;
        let is_warning = status.severity_of(finding.name()) >= Severity::Warning;
        let is_of_crash = *finding == Finding::CrashLoses
            || *finding == Finding::OutlookUnknown && status.forecast.outlook != Outlook::Unknown;
        let has_few_nodes = facts
            .start_next()
            .is_some_and(|start| start.pool_state.is_kept_from_nodes());
        // In huge pages, what a restart would lack is the cause.
        let of_restart = status
            .forecast
            .cause
            .filter(|_| status.forecast.outlook != Outlook::Hugetlb);
        let cause = if status.of_pending {
            of_restart
        } else {
            status.cause.or(of_restart)
        };
        let is_known = status.share.is_some()
            && status.capacity.is_some()
            && status.cause != Some(Cause::Unknown)
            && facts.pending != Pending::Unknown;
        let off = terms.setting(HugePages::Off);
        Some(match (finding, cause) {
            (Finding::AsRequested | Finding::LandingUnknown | Finding::HostMemoryUnknown, _)
            | (Finding::LimitHit { .. }, _) => return None,
            (Finding::RestartFails, _) if status.forecast.obstacle().is_some() => return None,
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
            _ if has_few_nodes && cause.is_none_or(|cause| cause == Cause::NodeLimit || is_of_pool(cause)) => format!(
                "Before its next start give the NUMA nodes that the {} may use more huge pages (/sys/devices/system/node), or let it \
                 use more nodes (cpuset.mems, numactl).",
                terms.server
            ),
            (_, Some(Cause::PageSizeUnsupported))
                if facts.pool_state.pool == PoolFact::Unsupported(Vec::new()) =>
            {
                format!("Set {off}, or boot a kernel that has huge pages.")
            }
            (_, Some(Cause::PageSizeUnsupported))
                if facts.requested_next().huge_page_size.is_some() =>
            {
                "Set huge_page_size = 0, the kernel's default size.".to_owned()
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
            _ => "Read the notes, which name what could not be determined.".to_owned(),
        })
    }
}
