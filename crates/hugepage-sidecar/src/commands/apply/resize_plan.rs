//! Decides whether a change of the pool is safe: arithmetic on the state of the host.

use hugepage_assess::assessment::Capacity;
use hugepage_assess::assessment::capacity::{HostMemory, KEPT_AVAILABLE};
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::{Bytes, PageSize, Pages};

/// The pool and the memory of the host.
#[derive(Clone, Debug)]
pub struct HostState {
    /// The pool to change.
    pub pool: Pool,
    /// `MemTotal`.
    pub mem_total: Bytes,
    /// `MemAvailable`, or the smaller `MemFree` on a kernel without it.
    pub available: Bytes,
    /// What processes may still be promised; `None` where that has no bound.
    pub commit_left: Option<Bytes>,
    /// Memory in pools of other page sizes.
    pub other_pools: Bytes,
    /// Memory that the kernel gives back for each new page, see [`HostMemory`].
    pub saved_per_page: Bytes,
    /// Percentage of memory that stays for base pages.
    pub reserve_percent: u32,
}

/// A change that the host can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResizePlan {
    /// The current size of the pool without surplus pages.
    pub from: Pages,
    /// The requested size.
    pub to: Pages,
    /// Pages that the kernel has to allocate.
    pub new_pages: Pages,
}

/// The reason why a change is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResizeRefusal {
    /// The pool would not leave enough memory for base pages.
    #[error(
        "{requested} huge pages of {size} ({}) do not fit: {reserve_percent}% of {mem_total} stay for base pages{}; at most \
         {maximum} fit; --reserve-percent allows more",
        size.times(*requested), other_pools_text(*other_pools)
    )]
    TooLarge {
        /// The requested size of the pool.
        requested: Pages,
        /// The page size.
        size: PageSize,
        /// `MemTotal`.
        mem_total: Bytes,
        /// Percentage that stays for base pages.
        reserve_percent: u32,
        /// Memory in pools of other page sizes.
        other_pools: Bytes,
        /// The largest pool that fits.
        maximum: Pages,
    },
    /// Too much memory is in use now.
    #[error(
        "{new_pages} more huge pages of {size} need {}: only {available} are available without swapping, and {min_available} \
         must remain; at most {maximum} pages fit now",
        size.times(*new_pages)
    )]
    NotAvailable {
        /// The pages to allocate.
        new_pages: Pages,
        /// The page size.
        size: PageSize,
        /// Available memory.
        available: Bytes,
        /// Memory that must remain available.
        min_available: Bytes,
        /// The largest pool that fits.
        maximum: Pages,
    },
    /// The kernel would refuse memory to processes.
    #[error(
        "{new_pages} more huge pages of {size} may take {} of what processes can be promised, and {left} are left \
         (vm.overcommit_memory is 2): stop the servers that are to use them first",
        size.times(*new_pages)
    )]
    NotPromised {
        /// The pages to allocate.
        new_pages: Pages,
        /// The page size.
        size: PageSize,
        /// What processes may still be promised.
        left: Bytes,
    },
    /// The pages are in use.
    #[error(
        "{in_use} huge pages of {size} are in use or reserved{}: with {requested} their users would lose them at their next \
         start; the pool can be reduced to {minimum}",
        surplus_text(*surplus)
    )]
    InUse {
        /// The requested size of the pool.
        requested: Pages,
        /// The page size.
        size: PageSize,
        /// Pages that are in use or reserved.
        in_use: Pages,
        /// Surplus pages.
        surplus: Pages,
        /// The smallest safe size.
        minimum: Pages,
    },
    /// A kernel before 2.6.17.
    #[error("this kernel does not report reserved huge pages, so the pool cannot be reduced safely")]
    PromisesUnknown,
}

impl HostState {
    /// The memory that must remain available.
    pub fn min_available(&self) -> Bytes {
        self.mem_total.percent(KEPT_AVAILABLE)
    }

    /// The pages that the host can hold. Its servers run on, so nothing of theirs moves.
    fn capacity(&self) -> Capacity {
        let Self { mem_total, reserve_percent, commit_left, saved_per_page, .. } = *self;
        let memory = HostMemory {
            mem_total,
            available: Some(self.available.max(self.min_available())),
            movable: Bytes(0),
            reserve_percent,
            commit_left,
            elsewhere: self.other_pools,
            saved_per_page,
        };
        Capacity::of_pool(&memory, &self.pool)
    }

    /// The change to a pool of `requested` pages.
    pub fn plan(&self, requested: Pages) -> Result<ResizePlan, ResizeRefusal> {
        let (from, size) = (self.pool.persistent(), self.pool.page_size);
        // Surplus pages become persistent first and need no memory.
        let new_pages = requested.saturating_sub(self.pool.nr);
        if requested > from {
            self.check_growth(requested, new_pages, size)?;
        } else if requested < from {
            let in_use = self.pool.in_use().ok_or(ResizeRefusal::PromisesUnknown)?;
            let minimum = in_use.min(from);
            if requested < minimum {
                let surplus = self.pool.surplus.unwrap_or_default();
                return Err(ResizeRefusal::InUse { requested, size, in_use, surplus, minimum });
            }
        }
        Ok(ResizePlan { from, to: requested, new_pages })
    }

    fn check_growth(&self, requested: Pages, new_pages: Pages, size: PageSize) -> Result<(), ResizeRefusal> {
        let min_available = self.min_available();
        let Capacity { within_reserve, now, .. } = self.capacity();
        // The pool keeps what it has, surplus pages as well: that takes no memory.
        let allowed = within_reserve.max(self.pool.nr);
        let maximum = allowed.min(now);
        if requested > allowed {
            let Self { mem_total, other_pools, reserve_percent, .. } = *self;
            return Err(ResizeRefusal::TooLarge { requested, size, mem_total, reserve_percent, other_pools, maximum });
        }
        if let Some(left) = self.commit_left.filter(|left| size.times(new_pages) > *left) {
            return Err(ResizeRefusal::NotPromised { new_pages, size, left });
        }
        if new_pages > Pages(0) && requested > now {
            return Err(ResizeRefusal::NotAvailable {
                new_pages,
                size,
                available: self.available,
                min_available,
                maximum,
            });
        }
        Ok(())
    }
}

fn other_pools_text(other_pools: Bytes) -> String {
    if other_pools == Bytes(0) { String::new() } else { format!(", {other_pools} are in huge pages of other sizes") }
}

fn surplus_text(surplus: Pages) -> String {
    match surplus {
        Pages(0) => String::new(),
        surplus => format!(" ({surplus} of the pool's pages are surplus)"),
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
            commit_left: None,
            other_pools: Bytes(0),
            saved_per_page: Bytes(0),
            reserve_percent: 20,
        }
    }

    #[test]
    fn what_processes_were_promised_stays() {
        let state = HostState { commit_left: Some(Bytes(GIB)), ..state([100, 0, 0, 0]) };
        assert_eq!(state.plan(Pages(612)).unwrap().new_pages, Pages(512));
        let refusal = state.plan(Pages(613)).unwrap_err().to_string();
        assert!(refusal.starts_with("513 more huge pages of 2 MB may take 1026 MB of what"), "{refusal}");
    }

    #[test]
    fn accept_safe_changes() {
        for (pool, requested, plan) in [
            ([0, 0, 0, 0], 0, (0, 0)),
            ([0, 0, 0, 0], 1000, (0, 1000)),
            ([0, 0, 0, 0], 19660, (0, 19660)),
            ([500, 500, 0, 0], 1000, (500, 500)),
            ([500, 500, 0, 0], 0, (500, 0)),
            // 300 in use, 100 reserved: 400 is the minimum.
            ([500, 200, 100, 0], 400, (500, 0)),
            // 20 of 100 are surplus: they become persistent first and need no memory.
            ([100, 0, 0, 20], 90, (80, 0)),
            ([100, 0, 0, 20], 100, (80, 0)),
            ([100, 0, 0, 20], 130, (80, 30)),
            ([100, 0, 0, 20], 80, (80, 0)),
            ([100, 60, 0, 20], 50, (80, 0)),
            // All surplus and in use: keeping them takes no memory, however many they are.
            ([22000, 0, 0, 22000], 22000, (0, 0)),
            // A pool that is too large already may get smaller, and stay too large.
            ([22000, 22000, 0, 0], 21000, (22000, 0)),
        ] {
            let (from, new_pages) = plan;
            let expected = ResizePlan { from: Pages(from), to: Pages(requested), new_pages: Pages(new_pages) };
            assert_eq!(state(pool).plan(Pages(requested)), Ok(expected), "{pool:?} {requested}");
        }
    }

    #[test]
    fn refuse_and_name_the_bound() {
        for (pool, requested, maximum) in [
            // 36569 pages are 71 GB.
            ([0, 0, 0, 0], 36569, 19660),
            ([0, 0, 0, 0], u64::MAX, 19660),
            ([0, 0, 0, 0], 19661, 19660),
            ([22000, 22000, 0, 0], 22001, 22000),
        ] {
            match state(pool).plan(Pages(requested)) {
                Err(ResizeRefusal::TooLarge { maximum: found, .. }) => {
                    assert_eq!(found, Pages(maximum), "{pool:?} {requested}")
                }
                other => panic!("{pool:?} {requested}: {other:?}"),
            }
        }
        for (pool, requested, lowest) in [
            ([500, 200, 100, 0], 399, 400),
            ([500, 0, 0, 0], 0, 500),
            // All 100 are in use, 20 of them surplus: none may be removed.
            ([100, 0, 0, 20], 79, 80),
            ([100, 60, 0, 20], 39, 40),
        ] {
            match state(pool).plan(Pages(requested)) {
                Err(ResizeRefusal::InUse { minimum, .. }) => assert_eq!(minimum, Pages(lowest), "{pool:?} {requested}"),
                other => panic!("{pool:?} {requested}: {other:?}"),
            }
        }
    }

    #[test]
    fn refuse_memory_in_use() {
        let busy = |pool| HostState { available: Bytes(3 * GIB), ..state(pool) };
        // 2% of 48 GB stay: 983 MB of 3 GB, which leaves 2088 MB.
        assert!(busy([100, 0, 0, 0]).plan(Pages(1144)).is_ok());
        let refusal = busy([100, 0, 0, 0]).plan(Pages(1145)).unwrap_err();
        assert!(
            matches!(refusal, ResizeRefusal::NotAvailable { maximum: Pages(1144), new_pages: Pages(1045), .. }),
            "{refusal:?}"
        );
        // A change that allocates nothing needs no available memory.
        let full = HostState { available: Bytes(0), ..state([100, 0, 0, 20]) };
        assert!(full.plan(Pages(100)).is_ok());
        assert!(full.plan(Pages(101)).is_err());
    }

    #[test]
    fn count_what_the_kernel_gives_back() {
        // 2088 MB beyond what stays available.
        let busy = || HostState { available: Bytes(3 * GIB), ..state([0, 0, 0, 0]) };
        let maximum = |state: &HostState| match state.plan(Pages(19_000)) {
            Err(ResizeRefusal::NotAvailable { maximum, .. } | ResizeRefusal::TooLarge { maximum, .. }) => maximum.0,
            other => panic!("{other:?}"),
        };
        assert_eq!(maximum(&busy()), 1044);
        // 28 of each 2048 kB come back.
        assert_eq!(maximum(&HostState { saved_per_page: Bytes(28 << 10), ..busy() }), 1058);
        assert!(busy().plan(Pages(1060)).is_err());
    }

    #[test]
    fn count_pools_of_other_sizes() {
        let beside = HostState { other_pools: Bytes(30 * GIB), ..state([0, 0, 0, 0]) };
        assert!(beside.plan(Pages(4300)).is_ok());
        let refusal = beside.plan(Pages(5000)).unwrap_err().to_string();
        assert_eq!(
            refusal,
            "5000 huge pages of 2 MB (10000 MB) do not fit: 20% of 48 GB stay for base pages, 30 GB are in huge pages of other \
             sizes; at most 4300 fit; --reserve-percent allows more"
        );
        let unknown = Pool { resv: None, ..state([10, 10, 0, 0]).pool };
        assert_eq!(HostState { pool: unknown, ..state([0; 4]) }.plan(Pages(5)), Err(ResizeRefusal::PromisesUnknown));
    }
}
