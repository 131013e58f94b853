//! The most that a server without huge pages can need. A mapping takes no page until a process touches it, so its size alone proves
//! nothing, and no start can have more than its control group allows.

use hugepage_assess::model::Segment;
use hugepage_kernel::cgroups::cgroup::CgroupLimits;
use hugepage_kernel::cgroups::memory_limit;
use hugepage_kernel::notes::Notes;
use hugepage_kernel::{Bytes, Root};

/// Bounds what the next start of the server `pid` asks for, unless its `segment` has huge pages. `limits`: those on huge pages.
pub(super) fn bound(root: &Root, pid: i32, limits: Option<&CgroupLimits>, segment: &mut Segment, notes: &mut Notes) {
    if segment.in_huge_pages > Bytes(0) {
        return;
    }
    let Some(most) = limit_of_group(root, pid, limits).filter(|most| segment.to_reserve > *most) else { return };
    notes.add(format!(
        "process {pid} maps {} of shared memory, and its control group lets it have {most}, which are taken as its need",
        segment.size
    ));
    segment.to_reserve = most;
}

/// The memory that the control group of `pid` lets it have, by its limits on memory and on huge pages; `None` without any.
fn limit_of_group(root: &Root, pid: i32, limits: Option<&CgroupLimits>) -> Option<Bytes> {
    let of_pages =
        limits.iter().flat_map(|limits| limits.fault.iter().chain(&limits.reservation)).map(|limit| limit.limit).min();
    // Without a limit of their own, huge pages may be more than the limit on memory: nobody knows by how much.
    memory_limit::of_process(root, pid).map(|memory| of_pages.map_or(memory, |pages| pages.max(memory)))
}
