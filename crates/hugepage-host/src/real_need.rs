//! The most that a server without huge pages can need. A mapping takes no page until a process touches it, so its size alone proves
//! nothing, and no start can have more than its control group allows.

use hugepage_assess::model::Segment;
use hugepage_kernel::Bytes;
use hugepage_kernel::cgroups::cgroup::CgroupLimits;
use hugepage_kernel::notes::Notes;

/// Bounds what the next start asks for of a server whose `segment` has no huge pages. `memory`, `limits`: what its control group lets
/// it have of memory, and of huge pages.
pub(super) fn bound(memory: Option<Bytes>, limits: Option<&CgroupLimits>, segment: &mut Segment, notes: &mut Notes) {
    let of_pages =
        limits.iter().flat_map(|limits| limits.fault.iter().chain(&limits.reservation)).map(|limit| limit.limit).min();
    // Without a limit of their own, huge pages may be more than the limit on memory: nobody knows by how much.
    let most = memory.map(|memory| of_pages.map_or(memory, |pages| pages.max(memory)));
    let Some(most) = most.filter(|most| segment.to_reserve > *most) else { return };
    notes.add(format!(
        "it maps {} of shared memory, and its control group lets it have {most}, which are taken as its need",
        segment.size
    ));
    segment.to_reserve = most;
}
