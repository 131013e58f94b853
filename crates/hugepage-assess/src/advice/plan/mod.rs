//! What to do, as steps that have both a sentence and an effect on the facts: a remedy is given only if the assessment
//! after all of its steps is better than before.

mod effect;
mod host;
mod nodes;
mod obstacle;
mod other_pool;
pub mod rows;
mod sentence;

use hugepage_kernel::{Bytes, PageSize, Pages};

use crate::assessment::{Finding, Outlook, Status};
use crate::model::{Cause, CrashRecovery, Facts, Landing, PagesOfStrangers, Pending};

/// One step. The order of this list is the order in which steps are to be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Raises a limit of a cgroup.
    RaiseLimit {
        /// The file.
        path: String,
        /// The least that does.
        to: Bytes,
    },
    /// Strangers give up pages of a pool.
    FreePages {
        /// The size of the pages.
        size: PageSize,
        /// How many.
        pages: Pages,
        /// Whose they are, with all that they have.
        strangers: PagesOfStrangers,
    },
    /// Reduces shared memory.
    Reduce {
        /// The most that it may take.
        to: Bytes,
        /// The largest `shared_buffers` with which it certainly takes no more; `None` for Oracle.
        shared_buffers: Option<Bytes>,
    },
    /// Sets a pool.
    SetPool {
        /// The size of its pages.
        size: PageSize,
        /// Whether that is the kernel's default size.
        is_default: bool,
        /// The pages that it is to keep.
        pages: Pages,
        /// Whether the host has the memory only when the server has stopped.
        after_stop: bool,
        /// What remains for base pages, where that is less than `reserve_percent`.
        leaves: Option<(Bytes, u32)>,
    },
    /// Sets the pool of a NUMA node that the server may use.
    SetNodePool {
        /// The node.
        node: u32,
        /// The size of its pages.
        size: PageSize,
        /// The pages that it is to keep.
        pages: Pages,
        /// As in [`Step::SetPool`].
        after_stop: bool,
        /// As in [`Step::SetPool`], of the whole host.
        leaves: Option<(Bytes, u32)>,
    },
    /// Sets what the kernel allows of System V shared memory: the group that may have huge pages, or how much.
    SetShmLimit {
        /// The kernel parameter.
        name: &'static str,
        /// Its value.
        value: u64,
    },
    /// Lets the owner lock so much.
    RaiseMemlock {
        /// The least that does.
        to: Bytes,
    },
    /// `huge_pages = try`, `use_large_pages = TRUE`.
    SetHugePagesTry,
    /// `shared_memory_type = mmap`.
    SetMmap,
    /// `huge_page_size = 0`.
    SetDefaultPageSize,
    /// `huge_page_size` of a pool that has enough pages.
    SetHugePageSize {
        /// The size.
        size: PageSize,
        /// The pages of that pool that the server could have.
        available: Pages,
        /// The pages of that size that it needs.
        needed: Pages,
    },
    /// SGA_TARGET in place of MEMORY_TARGET.
    ReplaceMemoryTarget,
    /// Starts the server again.
    Restart,
    /// Sets the pool that the next boot makes.
    SetPoolAtBoot {
        /// The size of its pages.
        size: PageSize,
        /// Whether that is the kernel's default size.
        is_default: bool,
        /// The pages.
        pages: Pages,
        /// The file that sets it now.
        file: Option<String>,
    },
}

impl Step {
    const fn rank(&self) -> u8 {
        match self {
            Self::RaiseLimit { .. } => 0,
            Self::Reduce { .. } => 1,
            Self::FreePages { .. } | Self::SetPool { .. } | Self::SetNodePool { .. } => 2,
            Self::SetShmLimit { .. } => 3,
            Self::RaiseMemlock { .. } => 4,
            Self::SetHugePagesTry
            | Self::SetMmap
            | Self::SetDefaultPageSize
            | Self::SetHugePageSize { .. }
            | Self::ReplaceMemoryTarget => 5,
            Self::Restart => 6,
            Self::SetPoolAtBoot { .. } => 7,
        }
    }

    /// Whether it changes the server's configuration.
    const fn is_setting(&self) -> bool {
        self.rank() == 5
    }
}

/// Steps in their order, all of which are necessary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
}

impl Plan {
    /// What mends `finding` in `status`, the first of several ways; `None` if nothing that is known here helps. Every output
    /// prints what to do from these steps.
    pub fn of_finding(status: &Status, finding: &Finding) -> Option<Self> {
        match finding {
            Finding::BootLoses => Self::of_boot(status),
            Finding::AsRequested | Finding::LandingUnknown | Finding::HostMemoryUnknown => None,
            Finding::OomGroup | Finding::LimitHit { .. } => None,
            Finding::PageTables if status.cause.is_none() => None,
            // Whoever can't be seen may need these pages.
            Finding::PoolWasted { .. } if status.facts.others_lack.is_none() => None,
            Finding::PoolWasted { needed } => Self::of_waste(status, *needed),
            Finding::CrashLoses if status.facts.crash_recovery != CrashRecovery::Possible => None,
            _ => Self::of_all_obstacles(status, finding)
                .or_else(|| Self::of_crash(status, finding))
                .or_else(|| Self::of_own_pool(status, finding))
                .or_else(|| Self::of_limits(status)),
        }
    }

    /// Raises the limits that harm the server, where something else is in the way that no step removes.
    fn of_limits(status: &Status) -> Option<Self> {
        let mut excesses = status.excesses();
        let mut steps = Vec::new();
        while let Some(step) = obstacle::raise(&excesses) {
            excesses.retain(|excess| !matches!(&step, Step::RaiseLimit { path, .. } if *path == excess.path));
            steps.push(step);
        }
        Some(Self { steps }).filter(|plan| plan.helps(status))
    }

    fn of_all_obstacles(status: &Status, finding: &Finding) -> Option<Self> {
        let plan = Self::without_proof(status)?;
        // What only the next start would lose needs no restart.
        if matches!(finding, Finding::RestartFails | Finding::RestartLoses) {
            let steps = plan.steps.iter().filter(|step| **step != Step::Restart).cloned().collect();
            let before = Self { steps };
            if before.helps(status) {
                return Some(before);
            }
        }
        Some(plan).filter(|plan| plan.helps(status))
    }

    /// What a crash needs is known from what runs, whatever the configuration on disk asks for.
    fn of_crash(status: &Status, finding: &Finding) -> Option<Self> {
        let running = Facts { pending: Pending::Unchanged, requested_may_differ: false, ..status.facts.clone() };
        let of_running = || Self::of_all_obstacles(&Status::assess(running), &Finding::RestartLoses);
        let plan = (*finding == Finding::CrashLoses).then(of_running)??;
        let after = Status::assess(plan.apply(&status.facts));
        (after.severity_of(finding.name()) < status.severity_of(finding.name())).then_some(plan)
    }

    /// The plan without pools of other sizes, where one of those does not help.
    fn of_own_pool(status: &Status, finding: &Finding) -> Option<Self> {
        if status.facts.other_pools.is_empty() {
            return None;
        }
        let facts = Facts { other_pools: Vec::new(), ..status.facts.clone() };
        Self::of_all_obstacles(&Status::assess(facts), finding)
    }

    /// Sets a pool that is too large to `pages`; `None` if that is no better, fewer than are in use or promised, or none:
    /// a pool without users is there for one that is stopped.
    pub fn of_waste(status: &Status, pages: Pages) -> Option<Self> {
        let size = status.facts.pool_state.huge_page_size?;
        let in_use = status.facts.pool_state.pool.known()?.in_use()?;
        if pages < in_use || pages == Pages(0) {
            return None;
        }
        let is_default = status.facts.is_default(size);
        let step = Step::SetPool { size, is_default, pages, after_stop: false, leaves: None };
        Some(Self { steps: vec![step] }).filter(|plan| plan.helps(status))
    }

    fn of_boot(status: &Status) -> Option<Self> {
        let all = Self::of_all_obstacles(status, &Finding::BootLoses).filter(|_| !status.facts.other_pools.is_empty());
        if all.is_some_and(|plan| plan.steps.iter().any(|step| matches!(step, Step::SetHugePageSize { .. }))) {
            return None;
        }
        let (boot, size) = (status.at_boot()?, status.facts.pool_state.huge_page_size?);
        let pages = boot.needed.max(status.recommended?);
        let is_default = status.facts.is_default(size);
        let step = Step::SetPoolAtBoot { size, is_default, pages, file: boot.file };
        Some(Self { steps: vec![step] }).filter(|plan| !status.does_not_fit() && plan.helps(status))
    }

    fn without_proof(status: &Status) -> Option<Self> {
        let mut steps = obstacle::all(status)?;
        let landing = status.facts.landing();
        // Base pages by choice are no reason to reduce anything.
        if status.cause == Some(Cause::Disabled) && steps.iter().any(|step| matches!(step, Step::Reduce { .. })) {
            return None;
        }
        let stays = matches!(landing, Landing::Hugetlb | Landing::Unknown)
            || obstacle::prevents_start(status) && status.cause == Some(Cause::Disabled);
        if !stays {
            // A start that depends on what can't be seen is no advice.
            if steps.is_empty() && status.outlook != Outlook::Hugetlb {
                return None;
            }
            steps.push(Step::Restart);
        }
        steps.sort_by_key(Step::rank);
        (!steps.is_empty()).then_some(Self { steps })
    }

    /// Whether the assessment after all steps is better than `status`.
    pub fn helps(&self, status: &Status) -> bool {
        gravity(&Status::assess(self.apply(&status.facts))) < gravity(status)
    }

    /// The facts after all steps.
    pub fn apply(&self, facts: &Facts) -> Facts {
        self.steps.iter().fold(facts.clone(), |facts, step| step.after(facts))
    }
}

/// How bad a status is: its verdict, then whether the server lacks the huge pages that it asks for, then all of its findings,
/// then what the next start or a crash would lose.
pub fn gravity(status: &Status) -> (u64, bool, u64, u8) {
    let severities = status.findings.iter().map(|(severity, _)| *severity as u64);
    let outlook = status.outlook.gravity().max(status.crash_outlook().map_or(0, Outlook::gravity));
    let lacks_pages = status.facts.wants_huge_pages() && status.facts.landing() != Landing::Hugetlb;
    (status.verdict().0 as u64, lacks_pages, severities.sum(), outlook)
}
