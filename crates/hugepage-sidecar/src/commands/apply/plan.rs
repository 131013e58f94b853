//! Whether the pool may become what was asked for: arithmetic on what the kernel said a moment ago.

use hugepage_core::assess::Capacity;
use hugepage_core::assess::capacity::{HostMemory, KEPT_AVAILABLE};
use hugepage_core::read::pool::Pool;
use hugepage_core::{Bytes, PageSize, Pages};

/// The host as it is.
#[derive(Clone, Debug)]
pub struct Ground {
    /// The pool that is to change.
    pub pool: Pool,
    /// `MemTotal`.
    pub mem_total: Bytes,
    /// `MemAvailable`, or `MemFree` on a kernel that has no such line, which is less.
    pub available: Bytes,
    /// The memory in pools of other sizes.
    pub elsewhere: Bytes,
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
    pub fresh: Pages,
}

/// Why it may not be done; sentences.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The host can't hold it beside its base pages.
    #[error(
        "{asked} huge pages of {size} are {}, and of this host's {mem_total} {reserve_percent}% stay for base pages{}: at the \
         most {most} fit; --reserve-percent allows more",
        size.times(*asked), others(*elsewhere)
    )]
    TooLarge {
        /// What was asked for.
        asked: Pages,
        /// The size of the pages.
        size: PageSize,
        /// All memory.
        mem_total: Bytes,
        /// The hundredths of it that are kept.
        reserve_percent: u32,
        /// The memory in pools of other sizes.
        elsewhere: Bytes,
        /// What would fit.
        most: Pages,
    },
    /// It would fit if less memory were in use.
    #[error(
        "{fresh} more huge pages of {size} take {}, and only {available} of memory can be had without swapping, of which {kept} \
         have to stay: at the most {most} pages fit now",
        size.times(*fresh)
    )]
    NotAvailable {
        /// The pages to be made.
        fresh: Pages,
        /// The size of the pages.
        size: PageSize,
        /// What is available.
        available: Bytes,
        /// What has to be, afterwards.
        kept: Bytes,
        /// What would fit.
        most: Pages,
    },
    /// Somebody has the pages.
    #[error(
        "{in_use} huge pages of {size} are in use or promised{}: with {asked} their users would keep them only until their \
         next start; the pool can be lowered to {floor}",
        above(*surplus)
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
        floor: Pages,
    },
    /// A kernel before 2.6.17.
    #[error("this kernel does not tell how many huge pages are promised, so the pool can't be lowered safely")]
    PromisesUnknown,
}

impl Ground {
    /// The memory that has to stay available.
    pub fn kept_available(&self) -> Bytes {
        self.mem_total.percent(KEPT_AVAILABLE)
    }

    /// How many pages the host can hold. Its servers run on, so nothing of theirs moves.
    fn capacity(&self) -> Capacity {
        let Self { mem_total, available, elsewhere, reserve_percent, .. } = *self;
        let memory =
            HostMemory { mem_total, available: Some(available), movable: Bytes(0), reserve_percent, elsewhere };
        Capacity::of(&memory, &self.pool)
    }

    /// The way to a pool that keeps `asked` pages.
    pub fn plan(&self, asked: Pages) -> Result<Plan, Refusal> {
        let (from, size) = (self.pool.persistent(), self.pool.page_size);
        // Surplus pages are the first to become lasting ones, and cost nothing.
        let fresh = asked.saturating_sub(self.pool.nr);
        if asked > from {
            self.may_grow(asked, fresh, size)?;
        } else if asked < from {
            let in_use = self.pool.in_use().ok_or(Refusal::PromisesUnknown)?;
            let floor = in_use.min(from);
            if asked < floor {
                let surplus = self.pool.surplus.unwrap_or_default();
                return Err(Refusal::InUse { asked, size, in_use, surplus, floor });
            }
        }
        Ok(Plan { from, to: asked, fresh })
    }

    fn may_grow(&self, asked: Pages, fresh: Pages, size: PageSize) -> Result<(), Refusal> {
        let kept = self.kept_available();
        let Capacity { within_reserve, now, .. } = self.capacity();
        // What the pool has it keeps, surplus pages as well: that takes no memory.
        let allowed = within_reserve.max(self.pool.nr);
        let most = allowed.min(now);
        if asked > allowed {
            let Self { mem_total, elsewhere, reserve_percent, .. } = *self;
            return Err(Refusal::TooLarge { asked, size, mem_total, reserve_percent, elsewhere, most });
        }
        if fresh > Pages(0) && asked > now {
            return Err(Refusal::NotAvailable { fresh, size, available: self.available, kept, most });
        }
        Ok(())
    }
}

fn others(elsewhere: Bytes) -> String {
    if elsewhere == Bytes(0) { String::new() } else { format!(" and {elsewhere} are in huge pages of other sizes") }
}

fn above(surplus: Pages) -> String {
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
    fn ground(pool: [u64; 4]) -> Ground {
        let [nr, free, resv, surplus] = pool.map(Pages);
        Ground {
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
            elsewhere: Bytes(0),
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
            // 300 touched, 100 promised: 400 is the floor.
            ([500, 200, 100, 0], 400, (500, 0)),
            // 20 of 100 are surplus: they become lasting ones first, and are no memory to be found.
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
            let (from, fresh) = plan;
            let expected = Plan { from: Pages(from), to: Pages(asked), fresh: Pages(fresh) };
            assert_eq!(ground(pool).plan(Pages(asked)), Ok(expected), "{pool:?} {asked}");
        }
    }

    #[test]
    fn what_is_refused_and_how_far_one_may_go() {
        for (pool, asked, most) in [
            // The seed's host: 36569 pages are 71 GB.
            ([0, 0, 0, 0], 36569, 19660),
            ([0, 0, 0, 0], u64::MAX, 19660),
            ([0, 0, 0, 0], 19661, 19660),
            ([22000, 22000, 0, 0], 22001, 22000),
        ] {
            match ground(pool).plan(Pages(asked)) {
                Err(Refusal::TooLarge { most: found, .. }) => assert_eq!(found, Pages(most), "{pool:?} {asked}"),
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
            match ground(pool).plan(Pages(asked)) {
                Err(Refusal::InUse { floor, .. }) => assert_eq!(floor, Pages(lowest), "{pool:?} {asked}"),
                other => panic!("{pool:?} {asked}: {other:?}"),
            }
        }
    }

    #[test]
    fn memory_that_is_in_use_is_not_taken() {
        let busy = |pool| Ground { available: Bytes(3 * GIB), ..ground(pool) };
        // 2% of 48 GB stay: 983 MB of 3 GB, which leaves 2088 MB.
        assert!(busy([100, 0, 0, 0]).plan(Pages(1144)).is_ok());
        let refusal = busy([100, 0, 0, 0]).plan(Pages(1145)).unwrap_err();
        assert!(matches!(refusal, Refusal::NotAvailable { most: Pages(1144), fresh: Pages(1045), .. }), "{refusal:?}");
        // What takes no memory is not asked of memory.
        let full = Ground { available: Bytes(0), ..ground([100, 0, 0, 20]) };
        assert!(full.plan(Pages(100)).is_ok());
        assert!(full.plan(Pages(101)).is_err());
    }

    #[test]
    fn pools_of_other_sizes_count() {
        let beside = Ground { elsewhere: Bytes(30 * GIB), ..ground([0, 0, 0, 0]) };
        assert!(beside.plan(Pages(4300)).is_ok());
        let refusal = beside.plan(Pages(5000)).unwrap_err().to_string();
        assert_eq!(
            refusal,
            "5000 huge pages of 2 MB are 10000 MB, and of this host's 48 GB 20% stay for base pages and 30 GB are in huge pages \
             of other sizes: at the most 4300 fit; --reserve-percent allows more"
        );
        let unknown = Pool { resv: None, ..ground([10, 10, 0, 0]).pool };
        assert_eq!(Ground { pool: unknown, ..ground([0; 4]) }.plan(Pages(5)), Err(Refusal::PromisesUnknown));
    }
}
