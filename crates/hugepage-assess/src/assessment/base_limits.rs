//! What the kernel grants a server in base pages (`__vm_enough_memory` in mm/util.c, `newseg` in ipc/shm.c).

use hugepage_kernel::{Bytes, KernelLimits, KernelRelease, Meminfo};

use crate::model::{BaseLimit, Requested, Segment};

/// How far the forecast of `vm.overcommit_memory` = 2 may be off: other processes go on, and a 32nd of the postmaster's own memory counts.
const COMMIT_MARGIN: Bytes = Bytes(64 << 20);
/// More than any request.
const ALL: Bytes = Bytes(u64::MAX);

/// The limits on a start of PostgreSQL that asks for `requested` once the server that has `segment` has ended. `shares_ipc`: whether the
/// System V segments of `kernel` are those of its IPC namespace.
pub fn base_limits(
    kernel: &KernelLimits,
    shares_ipc: bool,
    requested: &Requested,
    segment: Option<&Segment>,
    meminfo: Option<&Meminfo>,
) -> Vec<BaseLimit> {
    if requested.is_oracle() {
        return Vec::new();
    }
    let unknown = |name| BaseLimit::new(name, Bytes(0), ALL);
    let memory = meminfo.and_then(|meminfo| of_memory(kernel, meminfo, segment));
    let memory = memory.unwrap_or_else(|| unknown("vm.overcommit_memory"));
    let mut limits = vec![memory];
    if requested.sysv {
        let found = shares_ipc.then(|| of_system_v(kernel, segment)).flatten();
        limits.push(found.unwrap_or_else(|| unknown("kernel.shmmax and kernel.shmall")));
    }
    limits
}

/// The limit that `vm.overcommit_memory` makes; `None` if it is unknown.
fn of_memory(
    kernel: &KernelLimits,
    meminfo: &Meminfo,
    segment: Option<&Segment>,
) -> Option<BaseLimit> {
    Some(match meminfo.overcommit? {
        0 => {
            let all = meminfo.with_swap?;
            // Kernels before 5.2 compare with what is free, or can be freed.
            let release = kernel.release.as_deref().and_then(KernelRelease::parse);
            let is_old = release.is_some_and(|found| found.is_before(5, 2, 0));
            let free = meminfo.mem_available.or(meminfo.mem_free);
            // A container is never shown more than its host has.
            let most = if meminfo.is_of_lxcfs { ALL } else { all };
            let granted = if is_old { free? } else { all };
            BaseLimit::new(
                "MemTotal + SwapTotal (vm.overcommit_memory = 0)",
                granted,
                most,
            )
        }
        1 => BaseLimit::new("vm.overcommit_memory = 1", ALL, ALL),
        _ => {
            let (limit, committed) = meminfo.commit?;
            let reserve = kernel.admin_reserve.unwrap_or(0);
            let own = segment.map_or(Bytes(0), Segment::in_base_pages);
            let left = limit.saturating_add(own).saturating_sub(committed);
            let left = left.saturating_sub(Bytes::from_kib(reserve));
            // Its surplus pages leave the pool with it, which raises CommitLimit.
            let huge = segment.map_or(Bytes(0), |its| its.in_huge_pages);
            BaseLimit::new(
                "CommitLimit - Committed_AS (vm.overcommit_memory = 2)",
                left.saturating_sub(COMMIT_MARGIN),
                left.saturating_add(COMMIT_MARGIN).saturating_add(huge),
            )
        }
    })
}

/// The smaller of `kernel.shmmax` and what `kernel.shmall` leaves.
fn of_system_v(kernel: &KernelLimits, segment: Option<&Segment>) -> Option<BaseLimit> {
    let page = kernel.base_page_size?;
    let mut segments: Vec<_> = kernel.system_v.segments.as_ref()?.iter().collect();
    // Its own is given back first.
    let own = segments
        .iter()
        .position(|one| segment.is_some_and(|own| own.size == one.size));
    own.map(|own| segments.swap_remove(own));
    let used: u64 = segments
        .iter()
        .map(|one| page.pages_to_hold(one.size).0)
        .sum();
    let pages = kernel.system_v.shmall?.saturating_sub(used);
    let all = ("kernel.shmall", pages.saturating_mul(page.bytes().0));
    let each = ("kernel.shmmax", kernel.system_v.shmmax?);
    let (name, most) = if all.1 < each.1 { all } else { each };
    Some(BaseLimit::new(name, Bytes(most), Bytes(most)))
}
