//! Whether the pool may become what was asked for: arithmetic on what the kernel said a moment ago.

use hugepage_core::assess::pool_share::capacity;
use hugepage_core::read::pool::Pool;
use hugepage_core::{Bytes, PageSize, Pages};

/// Of all memory this much, in hundredths, stays available when the pool has grown: with nothing left the host would
/// throw out the page cache of its programs, and swap.
const MIN_AVAILABLE_PERCENT: u32 = 2;

/// The host as it is.
#[derive(Clone, Debug)]
pub struct HostState {
    /// The pool that is to change.
    pub pool: Pool,
    /// `MemTotal`.
    pub mem_total: Bytes,
    /// `MemAvailable`, or `MemFree` on a kernel that has no such line, which is less.
    pub available: Bytes,
    /// The memory in pools of other sizes.
    pub other_pools: Bytes,
    /// The hundredths of memory that stay for base pages.
    pub reserve_percent: u32,
}

/// A change that the host can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What the pool keeps now: its pages without the surplus ones.
    pub from: Pages,
    /// What it is to keep.
    pub to: Pages,
    /// Pages that the kernel has to make of base pages for it.
    pub new_pages: Pages,
}

/// Why it may not be done; sentences.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The host can't hold it beside its base pages.
    #[error(
        "{asked} huge pages of {size} are {}, and of this host's {mem_total} {reserve_percent}% stay for base pages{}: at the \
         maximum {maximum} fit",
        size.times(*asked), other_pools_text(*other_pools)
    )]
    TooLarge {
        /// What was asked for.
        asked: Pages,
        /// The size of the pages.
        size: PageSize,
        /// All memory.
        mem_total: Bytes,
        /// The hundredths of it that are min_available.
        reserve_percent: u32,
        /// The memory in pools of other sizes.
        other_pools: Bytes,
        /// What would fit.
        maximum: Pages,
    },
    /// It would fit if less memory were in use.
    #[error(
        "{new_pages} more huge pages of {size} take {}, and only {available} of memory can be had without swapping, of which {min_available} \
         have to stay: at the maximum {maximum} pages fit now",
        size.times(*new_pages)
    )]
    NotAvailable {
        /// The pages to be made.
        new_pages: Pages,
        /// The size of the pages.
        size: PageSize,
        /// What is available.
        available: Bytes,
        /// What has to be, afterwards.
        min_available: Bytes,
        /// What would fit.
        maximum: Pages,
    },
    /// Somebody has the pages.
    #[error(
        "{in_use} huge pages of {size} are in use or promised{}: with {asked} their users would keep them only until their \
         next start; the pool can be lowered to {minimum}",
        surplus_text(*surplus)
    )]
    InUse {
        /// What was asked for.
        asked: Pages,
        /// The size of the pages.
        size: PageSize,
        /// Pages that are touched or promised.
        in_use: Pages,
        /// Of all pages those above what the pool was set to.
        surplus: Pages,
        /// How far it may be lowered.
        minimum: Pages,
    },
    /// A kernel before 2.6.17.
    #[error("this kernel does not tell how many huge pages are promised, so the pool can't be lowered safely")]
    PromisesUnknown,
}

impl HostState {
    /// The memory that has to stay available.
    pub fn min_available(&self) -> Bytes {
        self.mem_total.percent(MIN_AVAILABLE_PERCENT)
    }

    /// The way to a pool that keeps `asked` pages.
    pub fn plan(&self, asked: Pages) -> Result<Plan, Refusal> {
        let (from, size) = (self.pool.persistent(), self.pool.page_size);
        // Surplus pages are the first to become lasting ones, and cost nothing.
        let new_pages = asked.saturating_sub(self.pool.nr);
        if asked > from {
            self.check_growth(asked, new_pages, size)?;
        } else if asked < from {
            let in_use = self.pool.in_use().ok_or(Refusal::PromisesUnknown)?;
            let minimum = in_use.min(from);
            if asked < minimum {
                let surplus = self.pool.surplus.unwrap_or_default();
                return Err(Refusal::InUse { asked, size, in_use, surplus, minimum });
            }
        }
        Ok(Plan { from, to: asked, new_pages })
    }

    fn check_growth(&self, asked: Pages, new_pages: Pages, size: PageSize) -> Result<(), Refusal> {
        let capacity = capacity(self.mem_total, self.reserve_percent, self.other_pools, size);
        let min_available = self.min_available();
        let within = self.pool.nr.saturating_add(size.pages_within(self.available.saturating_sub(min_available)));
        let maximum = capacity.min(within);
        if asked > capacity {
            let Self { mem_total, other_pools, reserve_percent, .. } = *self;
            return Err(Refusal::TooLarge { asked, size, mem_total, reserve_percent, other_pools, maximum });
        }
        if new_pages > Pages(0) && asked > within {
            return Err(Refusal::NotAvailable { new_pages, size, available: self.available, min_available, maximum });
        }
        Ok(())
    }
}

fn other_pools_text(other_pools: Bytes) -> String {
    if other_pools == Bytes(0) { String::new() } else { format!(" and {other_pools} are in huge pages of other sizes") }
}

fn surplus_text(surplus: Pages) -> String {
    match surplus {
        Pages(0) => String::new(),
        surplus => format!(" ({surplus} of the pool's pages are surplus, above what it was set to)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    /// `nr free resv surplus`, in pages of 2 MB, on a host of 48 GB with 40 GB available.
    fn state(pool: [u64; 4]) -> HostState {
        let [nr, free, resv, surplus] = pool.map(Pages);
        HostState {
            pool: Pool {
                page_size: PageSize::from_kib(2048).unwrap(),
                nr,
                free,
                resv: Some(resv),
                surplus: Some(surplus),
                overcommit: Some(Pages(0)),
            },
            mem_total: Bytes(48 * GIB),
            available: Bytes(40 * GIB),
            other_pools: Bytes(0),
            reserve_percent: 20,
        }
    }

    #[test]
    fn what_may_be_done() {
        for (pool, asked, plan) in [
            ([0, 0, 0, 0], 0, (0, 0)),
            ([0, 0, 0, 0], 1000, (0, 1000)),
            ([0, 0, 0, 0], 19660, (0, 19660)),
            ([500, 500, 0, 0], 1000, (500, 500)),
            ([500, 500, 0, 0], 0, (500, 0)),
            // 300 touched, 100 promised: 400 is the minimum.
            ([500, 200, 100, 0], 400, (500, 0)),
            // 20 of 100 are surplus: they become lasting ones first, and are no memory to be found.
            ([100, 0, 0, 20], 90, (80, 0)),
            ([100, 0, 0, 20], 100, (80, 0)),
            ([100, 0, 0, 20], 130, (80, 30)),
            ([100, 0, 0, 20], 80, (80, 0)),
            ([100, 60, 0, 20], 50, (80, 0)),
            // A pool that is too large already may get smaller, and stay too large.
            ([22000, 22000, 0, 0], 21000, (22000, 0)),
        ] {
            let (from, new_pages) = plan;
            let expected = Plan { from: Pages(from), to: Pages(asked), new_pages: Pages(new_pages) };
            assert_eq!(state(pool).plan(Pages(asked)), Ok(expected), "{pool:?} {asked}");
        }
    }

    #[test]
    fn what_is_refused_and_how_far_one_may_go() {
        for (pool, asked, maximum) in [
            // The seed's host: 36569 pages are 71 GB.
            ([0, 0, 0, 0], 36569, 19660),
            ([0, 0, 0, 0], u64::MAX, 19660),
            ([0, 0, 0, 0], 19661, 19660),
            ([22000, 22000, 0, 0], 22001, 19660),
        ] {
            match state(pool).plan(Pages(asked)) {
                Err(Refusal::TooLarge { maximum: found, .. }) => assert_eq!(found, Pages(maximum), "{pool:?} {asked}"),
                other => panic!("{pool:?} {asked}: {other:?}"),
            }
        }
        for (pool, asked, lowest) in [
            ([500, 200, 100, 0], 399, 400),
            ([500, 0, 0, 0], 0, 500),
            // All 100 are in use, 20 of them surplus: nothing may go.
            ([100, 0, 0, 20], 79, 80),
            ([100, 60, 0, 20], 39, 40),
        ] {
            match state(pool).plan(Pages(asked)) {
                Err(Refusal::InUse { minimum, .. }) => assert_eq!(minimum, Pages(lowest), "{pool:?} {asked}"),
                other => panic!("{pool:?} {asked}: {other:?}"),
            }
        }
    }

    #[test]
    fn memory_that_is_in_use_is_not_taken() {
        let busy = |pool| HostState { available: Bytes(3 * GIB), ..state(pool) };
        // 2% of 48 GB stay: 983 MB of 3 GB, which leaves 2088 MB.
        assert!(busy([100, 0, 0, 0]).plan(Pages(1144)).is_ok());
        let refusal = busy([100, 0, 0, 0]).plan(Pages(1145)).unwrap_err();
        assert!(
            matches!(refusal, Refusal::NotAvailable { maximum: Pages(1144), new_pages: Pages(1045), .. }),
            "{refusal:?}"
        );
        // What takes no memory is not asked of memory.
        let full = HostState { available: Bytes(0), ..state([100, 0, 0, 20]) };
        assert!(full.plan(Pages(100)).is_ok());
        assert!(full.plan(Pages(101)).is_err());
    }

    #[test]
    fn pools_of_other_sizes_count() {
        let beside = HostState { other_pools: Bytes(30 * GIB), ..state([0, 0, 0, 0]) };
        assert!(beside.plan(Pages(4300)).is_ok());
        let refusal = beside.plan(Pages(5000)).unwrap_err().to_string();
        assert_eq!(
            refusal,
            "5000 huge pages of 2 MB are 10000 MB, and of this host's 48 GB 20% stay for base pages and 30 GB are in huge pages \
             of other sizes: at the maximum 4300 fit"
        );
        let unknown = Pool { resv: None, ..state([10, 10, 0, 0]).pool };
        assert_eq!(HostState { pool: unknown, ..state([0; 4]) }.plan(Pages(5)), Err(Refusal::PromisesUnknown));
    }
}
