//! How many huge pages of one size a host can hold: what it could not hold at all, as measured, and what would leave less
//! to base pages than the administrator wants.

use crate::model::Facts;
use crate::read::meminfo::Meminfo;
use crate::read::pool::Pool;
use crate::{Bytes, PageSize, Pages};

/// Of all memory this much, in hundredths, stays available when the pool has grown: with nothing left the host would
/// throw out the page cache of its programs, and swap.
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
    /// What pools of other sizes take.
    pub elsewhere: Bytes,
}

impl HostMemory {
    /// From /proc/meminfo, for a pool that takes `in_pool` now, of servers with `in_base_pages` of shared memory that is
    /// to move. `None` without `MemTotal`.
    pub fn of(meminfo: &Meminfo, in_pool: Bytes, in_base_pages: Bytes, reserve_percent: u32) -> Option<Self> {
        Some(Self {
            mem_total: meminfo.mem_total?,
            available: meminfo.mem_available,
            // What of it was never touched takes no memory.
            movable: in_base_pages.min(meminfo.shmem.unwrap_or_default()),
            reserve_percent,
            elsewhere: meminfo.hugetlb.map_or(Bytes(0), |hugetlb| hugetlb.saturating_sub(in_pool)),
        })
    }
}

/// The largest pool of one page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// With more pages, less than `reserve_percent` of memory would remain for base pages.
    pub within_reserve: Pages,
    /// With more pages, the kernel would have to swap before servers in base pages stop. Never less than the pool has.
    pub now: Pages,
    /// The most that the host can hold, as measured, or `within_reserve` where that is unknown. Never less than the pool
    /// has, nor than is in use or promised.
    pub most: Pages,
    /// What it was worked out from.
    pub memory: HostMemory,
}

impl Capacity {
    /// The capacity for pages of the size of `pool`.
    pub fn of(memory: &HostMemory, pool: &Pool) -> Self {
        let size = pool.page_size;
        let HostMemory { mem_total, available, movable, reserve_percent, elsewhere } = *memory;
        let usable = mem_total.saturating_sub(mem_total.percent(reserve_percent));
        let within_reserve = size.pages_within(usable.saturating_sub(elsewhere));
        let held = pool.nr.max(pool.in_use().unwrap_or_default());
        let with = |available: Bytes| {
            let more = size.pages_within(available.saturating_sub(mem_total.percent(KEPT_AVAILABLE)));
            held.max(held.saturating_add(more).min(size.pages_within(mem_total.saturating_sub(elsewhere))))
        };
        let (now, most) = match available {
            Some(available) => (with(available), with(available.saturating_add(movable))),
            None => (within_reserve.max(held), within_reserve.max(held)),
        };
        Self { within_reserve, now, most, memory: *memory }
    }

    /// The bound for what is optional, and for settings that are to be reduced: what leaves `reserve_percent` to base
    /// pages, unless no more than `beside` fits there.
    pub fn comfortable(self, beside: Pages) -> Pages {
        let comfortable = self.within_reserve.min(self.most);
        if comfortable > beside { comfortable } else { self.most }
    }

    /// What a pool of `pages` leaves to base pages and the percentage that was to be left, if it leaves less.
    pub fn leaves_less(self, pages: Pages, size: PageSize) -> Option<(Bytes, u32)> {
        let left = self.memory.mem_total.saturating_sub(self.memory.elsewhere).saturating_sub(size.times(pages));
        self.is_beyond_reserve(pages).then_some((left, self.memory.reserve_percent))
    }

    /// Whether a pool of `pages` leaves less to base pages than `reserve_percent`.
    pub fn is_beyond_reserve(self, pages: Pages) -> bool {
        pages > self.within_reserve
    }
}

impl Facts {
    /// The memory of this server's host, as it matters for `pool`.
    pub fn host_memory(&self, pool: &Pool) -> Option<HostMemory> {
        let of_others = pool.page_size.times(self.others_lack.unwrap_or_default());
        let own = self.segment.as_ref().map_or(Bytes(0), |segment| segment.in_base_pages());
        let in_pool = pool.page_size.times(pool.nr);
        HostMemory::of(self.meminfo.as_ref()?, in_pool, own.saturating_add(of_others), self.reserve_percent)
    }

    /// How many pages of `pool` this host can hold.
    pub fn capacity(&self, pool: &Pool) -> Option<Capacity> {
        Some(Capacity::of(&self.host_memory(pool)?, pool))
    }
}
