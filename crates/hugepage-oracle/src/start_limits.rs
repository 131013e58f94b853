//! What the kernel refuses a start of an instance that does not run: huge pages to its owner, or any shared memory.

use hugepage_assess::model::{LockLimit, PoolFact};
use hugepage_facts::{PoolRow, pools};
use hugepage_kernel::memory::kernel_limits::SystemV;
use hugepage_kernel::memory::sysvipc::SysvSegment;
use hugepage_kernel::{Bytes, KernelLimits, Meminfo, PageSize, Pages};

/// The file that names the local registry of Grid Infrastructure, in a cluster and under Oracle Restart.
pub(crate) const GRID_REGISTRY: &str = "/etc/oracle/olr.loc";

/// What a start may take beyond the pages that are certain.
const MARGIN: Bytes = Bytes(64 << 20);

/// What the host has for a start.
#[derive(Clone, Copy)]
pub struct HostOfStarts<'a> {
    /// The kernel's limits.
    pub kernel: &'a KernelLimits,
    /// The size of /dev/shm; `None` if unknown.
    pub dev_shm: Option<Bytes>,
    /// The host's memory; `None` if it could not be read.
    pub meminfo: Option<&'a Meminfo>,
    /// All pools.
    pub pools: &'a [PoolRow],
    /// The memory in System V segments of huge pages that the running instances of a user have.
    pub held: &'a dyn Fn(u32) -> Bytes,
}

impl HostOfStarts<'_> {
    /// The pool that a start finds, and the size of its pages; `None` if the kernel has no huge pages, or if that is unknown.
    pub(crate) fn pool(&self) -> (Option<PageSize>, PoolFact) {
        let Some(meminfo) = self.meminfo else {
            return (None, PoolFact::Unknown);
        };
        let Some(size) = meminfo.huge_page_size else {
            return (None, PoolFact::Unsupported(Vec::new()));
        };
        let pool = pools::of_size(self.pools, size);
        (
            Some(size),
            pool.map_or(PoolFact::Unknown, |row| PoolFact::Known(row.pool.clone())),
        )
    }
}

/// Memory that a start has to lock, and that the last one could not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LackedMemlock {
    /// The limit of the last start, which may have been raised since; `None` if its log does not show one.
    pub limit: Option<Bytes>,
    /// What the next start needs.
    pub needed: Bytes,
}

/// The limit of the host that a start with segments of at least `size` bytes exceeds; `own`: segments that end before.
pub fn of_host(kernel: &KernelLimits, size: Bytes, own: Bytes) -> Option<LockLimit> {
    let SystemV {
        shmall,
        shmmni,
        shmmax,
        segments,
        ..
    } = &kernel.system_v;
    let segments = segments.as_deref().unwrap_or_default();
    let page = kernel.base_page_size?;
    let rounded = |segment: &SysvSegment| page.times(page.pages_to_hold(segment.size));
    let all: Bytes = segments.iter().map(rounded).sum();
    let others = all.saturating_sub(own);
    if let Some(pages) = *shmall {
        let limit = page.times(Pages(pages));
        let least = others.saturating_add(size);
        if limit < least {
            // With what a start takes beyond the size that is certain.
            let needed = least.saturating_add(MARGIN);
            return Some(LockLimit::Shmall {
                limit,
                others,
                needed_pages: page.pages_to_hold(needed).0,
            });
        }
    }
    let most = (*shmmni)?;
    let largest = shmmax.unwrap_or(u64::MAX).max(1);
    // Segments that end before may be any of them.
    let needed = if own > Bytes(0) {
        0
    } else {
        size.0.div_ceil(largest)
    };
    (needed.saturating_add(segments.len() as u64) > most)
        .then_some(LockLimit::Shmmni { limit: most })
}
