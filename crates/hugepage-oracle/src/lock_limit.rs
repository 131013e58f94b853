//! What refuses an instance System V segments in huge pages.

use hugepage_assess::assessment::advisory::Advisories;
use hugepage_assess::model::{Landing, LockLimit, Segment};
use hugepage_kernel::fields::value;
use hugepage_kernel::host::kernel_release::KernelRelease;
use hugepage_kernel::memory::sysctl;
use hugepage_kernel::proc::rlimit::Rlimit;
use hugepage_kernel::{Bytes, Root};

use crate::readers::LastStart;

/// What the kernel requires for System V segments in huge pages and the instance lacks: CAP_IPC_LOCK, `vm.hugetlb_shm_group`, or
/// before 5.18 a limit on locked memory of at least their size. `None` for an instance that is in huge pages.
pub fn lock_limit(root: &Root, pid: i32, segment: Option<&Segment>, memlock: Option<Rlimit>) -> Option<LockLimit> {
    const CAP_IPC_LOCK: u64 = 1 << 14;
    let is_let = segment.is_some_and(|segment| segment.in_huge_pages > Bytes(0));
    if is_let {
        return None;
    }
    let text = root.read_short(&format!("/proc/{pid}/status"), str::to_owned).ok()?;
    let line = |name: &str| value(&text, name);
    let capabilities = line("CapEff").and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())?;
    let group = sysctl::running(root, "vm.hugetlb_shm_group").ok().flatten()?;
    let of_process = || line("Gid").into_iter().chain(line("Groups")).flat_map(str::split_ascii_whitespace);
    if capabilities & CAP_IPC_LOCK != 0 || of_process().any(|gid| gid == group) {
        return None;
    }
    // The effective group is the second of four (proc(5)).
    let gid = || line("Gid")?.split_ascii_whitespace().nth(1)?.parse().ok();
    let counts_memlock = Advisories::known().affects("shm_memlock", &KernelRelease::text(root)?);
    match (counts_memlock, memlock?) {
        (Some(true), Rlimit::At(limit)) => Some(LockLimit::Memlock { limit, others: Bytes(0) }),
        (Some(true), Rlimit::Unlimited) => None,
        (Some(false), _) => Some(LockLimit::ShmGroup { gid: gid()? }),
        (None, limit) => Some(LockLimit::Either { gid: gid()?, limit: limit.bytes() }),
    }
}

/// What refused huge pages at a start whose table in the log has enough available pages and allocated none of them: the memlock limit
/// in the log if it was too small, else something that is not visible. `None` if the table shows something else.
pub fn logged_refusal(start: &LastStart, segment: &Segment) -> Option<LockLimit> {
    let mut huge = start.page_sizes.iter().filter(|row| !row.is_base && row.expected.is_some_and(|pages| pages.0 > 0));
    let is_refused = huge.all(|row| row.available >= row.expected && row.allocated.is_some_and(|pages| pages.0 == 0));
    if !is_refused || segment.landing != Landing::Base || start.page_sizes.iter().all(|row| row.is_base) {
        return None;
    }
    match start.memlock {
        Some(Rlimit::At(limit)) if limit < segment.to_reserve => Some(LockLimit::Memlock { limit, others: Bytes(0) }),
        _ => Some(LockLimit::Unexplained),
    }
}
