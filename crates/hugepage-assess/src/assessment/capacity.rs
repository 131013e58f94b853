//! How many huge pages of one size a host can hold, as measured, and what leaves enough to base pages.

use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::{Bytes, PageSize, Pages};

use crate::model::{Facts, Segment};

/// The hundredths of memory that stay available when the pool has grown: with nothing left the host would drop its cache, and swap.
pub const KEPT_AVAILABLE: u32 = 2;

/// A host's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostMemory {
    /// `MemTotal`.
    pub mem_total: Bytes,
    /// `MemAvailable`; `None` on a kernel before 3.14, whose `MemFree` lacks what the page cache would give back.
    pub available: Option<Bytes>,
    /// Shared memory in base pages that would move into the pool: it is available as soon as its servers stop.
    pub movable: Bytes,
    /// The hundredths of memory that are to stay for base pages.
    pub reserve_percent: u32,
    /// What processes may still be promised; `None` if that has no bound.
    pub commit_left: Option<Bytes>,
    /// What pools of other sizes take.
    pub elsewhere: Bytes,
}

impl HostMemory {
    /// From /proc/meminfo, for `pool`, of servers with `in_base_pages` of shared memory that is to move. `None` without `MemTotal`.
    pub fn beside_pool(
        meminfo: &Meminfo,
        pool: &Pool,
        in_base_pages: Bytes,
        reserve_percent: u32,
    ) -> Option<Self> {
        let in_pool = pool.page_size.times(pool.nr);
        Some(Self {
            mem_total: meminfo.mem_total?,
            available: meminfo.mem_available,
            // What of it was never touched takes no memory.
            movable: in_base_pages.min(meminfo.shmem.unwrap_or_default()),
            reserve_percent,
            commit_left: meminfo.commit_left,
            elsewhere: meminfo
                .hugetlb
                .map_or(Bytes(0), |hugetlb| hugetlb.saturating_sub(in_pool)),
        })
    }
}

/// The largest pool of one page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// With more pages, less than `reserve_percent` of memory would remain for base pages.
    pub within_reserve: Pages,
    /// With more pages, the kernel would swap before servers in base pages stop, or refuse memory. Never less than the pool has.
    pub now: Pages,
    /// The most that the host can hold, as measured, or `within_reserve` where that is unknown. Never less than the pool has or owes.
    pub most: Pages,
    /// What the pool has now: a number that is no more takes no memory.
    pub nr: Pages,
    /// What it was worked out from.
    pub memory: HostMemory,
}

impl Capacity {
    /// The capacity for pages of the size of `pool`.
    pub fn of_pool(memory: &HostMemory, pool: &Pool) -> Self {
        let size = pool.page_size;
        let HostMemory {
            mem_total,
            available,
            movable,
            reserve_percent,
            commit_left,
            elsewhere,
        } = *memory;
        let usable = mem_total.saturating_sub(mem_total.percent(reserve_percent));
        let within_reserve = size.pages_within(usable.saturating_sub(elsewhere));
        let held = pool.nr.max(pool.in_use().unwrap_or_default());
        let with = |available: Bytes| {
            let more =
                size.pages_within(available.saturating_sub(mem_total.percent(KEPT_AVAILABLE)));
            held.max(
                held.saturating_add(more)
                    .min(size.pages_within(mem_total.saturating_sub(elsewhere))),
            )
        };
        let (now, most) = match available {
            Some(available) => (with(available), with(available.saturating_add(movable))),
            None => (within_reserve.max(held), within_reserve.max(held)),
        };
        let promised = commit_left.map_or(Pages(u64::MAX), |left| {
            pool.nr.saturating_add(size.pages_within(left))
        });
        Self {
            within_reserve,
            now: now.min(promised.max(held)),
            most,
            nr: pool.nr,
            memory: *memory,
        }
    }

    /// The number that all outputs recommend for `pool`, where those that an output sees need `needed` pages in all: no more
    /// than the host can hold, and never fewer than the pool has, because somebody who can't be seen may need them. `strangers`: pages
    /// in use that are no reason for more.
    pub fn recommended(self, needed: Pages, pool: &Pool, strangers: Pages) -> Pages {
        let in_use = pool.in_use().unwrap_or_default().saturating_sub(strangers);
        needed.min(self.most).max(pool.persistent()).max(in_use)
    }

    /// The bound for what is optional: what leaves `reserve_percent` to base pages, unless no more than `beside` fits there.
    pub fn comfortable(self, beside: Pages) -> Pages {
        let comfortable = self.within_reserve.min(self.most);
        if comfortable > beside {
            comfortable
        } else {
            self.most
        }
    }

    /// What a larger pool of `pages` leaves to base pages and the percentage that was to be left, if it leaves less.
    pub fn leaves_less(self, pages: Pages, size: PageSize) -> Option<(Bytes, u32)> {
        let left = self
            .memory
            .mem_total
            .saturating_sub(self.memory.elsewhere)
            .saturating_sub(size.times(pages));
        (pages > self.nr.max(self.within_reserve)).then_some((left, self.memory.reserve_percent))
    }
}

impl Facts {
    /// How many pages of `pool` this host can hold.
    pub fn capacity(&self, pool: &Pool) -> Option<Capacity> {
        let of_others = pool.page_size.times(self.others_lack.unwrap_or_default());
        let own = self
            .segment
            .as_ref()
            .map_or(Bytes(0), Segment::in_base_pages);
        let movable = own.saturating_add(of_others);
        let memory = HostMemory::beside_pool(&self.meminfo, pool, movable, self.reserve_percent)?;
        Some(Capacity::of_pool(&memory, pool))
    }
}
