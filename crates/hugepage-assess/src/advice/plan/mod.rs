//! What to do, as steps that follow from the status: each has a sentence, a row and a command.

pub mod rows;
mod sentence;
mod start;

use hugepage_facts::{Cause, Landing};
use hugepage_kernel::{Bytes, PageSize, Pages};

use crate::assessment::{Finding, Outlook, Start, Status};
use crate::model::{CrashRecovery, HugePages, NodePools, PagesOfStrangers, Pending};

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
    /// Reduces shared memory.
    Reduce {
        /// The most that it may take.
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
    /// `huge_pages = try`, `use_large_pages = TRUE`.
    SetHugePagesTry,
    /// `shared_memory_type = mmap`.
    SetMmap,
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
    /// Whether it changes the server's configuration.
    const fn is_setting(&self) -> bool {
        matches!(
            self,
            Self::SetHugePagesTry | Self::SetMmap | Self::ReplaceMemoryTarget
        )
    }
}

/// Who may use a pool that is too large.
pub const UNLESS: &str =
    ", unless a stopped server needs these pages, or one in base pages is to have them";

/// Steps in their order, all of which are necessary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
}

impl Plan {
    /// The plan that fixes `finding` in `status`; `None` if nothing known helps. Every output prints these steps.
    pub fn of_finding(status: &Status, finding: &Finding) -> Option<Self> {
        let (facts, of_start) = (&status.facts, |start, is_restart| {
            Self::of_start(status, start, is_restart)
        });
        let restart = || of_start(facts.start_next()?, true);
        let crash = || of_start(facts.start_again(), false);
        let steps = match finding {
            Finding::AsRequested | Finding::LandingUnknown => return None,
            Finding::HostMemoryUnknown | Finding::LimitHit { .. } => return None,
            Finding::BootLoses | Finding::BootUnknown => return Self::of_boot(status),
            Finding::PoolWasted { needed } => return Self::of_waste(status, *needed),
            Finding::PageTables
                if matches!(status.facts.landing(), Landing::Hugetlb | Landing::Unknown) =>
            {
                return None;
            }
            Finding::CrashLoses if status.facts.crash_recovery != CrashRecovery::Possible => {
                return None;
            }
            Finding::CrashLoses => crash(),
            // Such as cgroups that are not visible from here.
            Finding::OutlookUnknown
                if status.facts.is_in_huge_pages() && status.hides_more_than_pages() =>
            {
                None
            }
            // What only the next start would lose needs no restart.
            Finding::RestartFails | Finding::RestartLoses => {
                let steps = restart().map(|mut steps| {
                    steps.retain(|step| *step != Step::Restart);
                    steps
                });
                let is_gain =
                    |step: &Step| !step.is_setting() && !matches!(step, Step::Reduce { .. });
                let gains = steps
                    .as_ref()
                    .is_some_and(|steps| steps.iter().all(is_gain));
                let refusal = status
                    .forecast
                    .obstacle()
                    .filter(|danger| !danger.is_signal);
                match refusal {
                    Some(danger) if !gains && danger.allowed > Bytes(0) => {
                        Some(vec![Step::Reduce { to: danger.allowed }])
                    }
                    _ => steps,
                }
            }
            // What it runs with needs these pages, whatever its files ask for by now.
            _ if status.facts.pending == Pending::Unknown => crash(),
            _ => restart(),
        };
        // Limits that harm the server are raised, where something else is in the way that no step removes.
        let steps = steps.unwrap_or_else(|| start::raise(start::needs(status.excesses())));
        (!steps.is_empty()).then_some(Self { steps })
    }

    /// The steps for `start` in their order; `None` if they do not lead to huge pages.
    fn of_start(status: &Status, start: Start<'_>, is_restart: bool) -> Option<Vec<Step>> {
        // What the files ask for by now is the choice of a restart.
        let asks = is_restart && start.requested.huge_pages != HugePages::Off;
        let by_choice = status.cause == Some(Cause::Disabled) && !asks;
        let mut steps = match start
            .pool_state
            .lock_limit
            .filter(|limit| limit.prevents_start())
        {
            // Base pages by choice are no reason for more than a start needs.
            Some(limit) if by_choice => {
                return Some(Vec::from_iter(start::permission(limit, Bytes(0))));
            }
            _ => start.steps(status)?,
        };
        // A crash reads no configuration.
        let is_able = is_restart || !steps.iter().any(Step::is_setting);
        // Base pages by choice are no reason to reduce anything, nor to depend on what can't be seen.
        let is_sure = !status.hides_more_than_pages()
            && !steps.iter().any(|step| matches!(step, Step::Reduce { .. }));
        if !is_able || by_choice && !is_sure {
            return None;
        }
        if !matches!(status.facts.landing(), Landing::Hugetlb | Landing::Unknown) {
            // A start that depends on what can't be seen is no advice.
            if steps.is_empty() && status.forecast.outlook != Outlook::Hugetlb {
                return None;
            }
            steps.push(Step::Restart);
        }
        Some(steps)
    }

    /// Sets a pool that is too large to `pages`; `None` if that is fewer than are in use or promised, or none: a pool without
    /// users is there for one that is stopped. Whoever can't be seen may need these pages.
    pub fn of_waste(status: &Status, pages: Pages) -> Option<Self> {
        let facts = &status.facts;
        let (size, in_use) = (facts.pool_state.huge_page_size?, facts.pool()?.in_use()?);
        // What goes may be of the nodes that it may use.
        let is_free = !facts.pool_state.is_kept_from_nodes();
        let is_for_sure = facts.knows_all_needs() && pages >= in_use && pages > Pages(0) && is_free;
        let step = Step::SetPool {
            size,
            is_default: facts.is_default(size),
            pages,
            after_stop: false,
            leaves: None,
        };
        is_for_sure.then(|| Self { steps: vec![step] })
    }

    fn of_boot(status: &Status) -> Option<Self> {
        if status.does_not_fit() || status.facts.pool_state.is_kept_from_nodes() {
            return None;
        }
        let (boot, size) = (status.at_boot()?, status.facts.pool_state.huge_page_size?);
        let wasted = status
            .findings
            .iter()
            .find_map(|(_, finding)| match finding {
                Finding::PoolWasted { needed } => {
                    Self::of_waste(status, *needed).and(Some(*needed))
                }
                _ => None,
            });
        let pages = boot.needed.max(wasted.or(status.recommended)?);
        let is_default = status.facts.is_default(size);
        Some(Self {
            steps: vec![Step::SetPoolAtBoot {
                size,
                is_default,
                pages,
                file: boot.smaller.map_or(boot.file, |(_, file)| Some(file)),
            }],
        })
    }
}

impl Status {
    /// Whether an outlook would stay unknown with any number of pages.
    fn hides_more_than_pages(&self) -> bool {
        let facts = &self.facts;
        let pool_state = facts.next_pool_state();
        !pool_state.sees_limits()
            || pool_state
                .nodes
                .as_ref()
                .is_some_and(NodePools::may_be_fewer)
    }
}

impl Start<'_> {
    /// The steps in their order but for the restart; `None` if something is in the way that no step
    /// removes.
    fn steps(mut self, status: &Status) -> Option<Vec<Step>> {
        let settings = self.ask_for_huge_pages();
        let (size, needed) = (self.pool_state.huge_page_size?, self.needed()?);
        let bytes = size.times(needed);
        let mut steps = self.limits(status, needed, size);
        // The kernel asks for permission first, then for pages.
        if let Some(lock) = self
            .pool_state
            .lock_limit
            .filter(|lock| lock.refuses(bytes) || lock.may_refuse(bytes))
        {
            steps.push(start::permission(lock, bytes)?);
        }
        steps.extend(self.pages(status)?);
        steps.extend(settings);
        Some(steps)
    }
}
