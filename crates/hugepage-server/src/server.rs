//! The facts on one PostgreSQL server, seen from one of its own processes.

use hugepage_assess::model::{Facts, Landing, NodePools, PoolFact, PoolState, RESIZABLE, Requested, Segment};
use hugepage_kernel::mapping::maps::Mapping;
use hugepage_kernel::mapping::memory_policy::{self, MemoryPolicy, allowed_nodes};
use hugepage_kernel::mapping::smaps;
use hugepage_kernel::memory::meminfo::{LXCFS, Meminfo};
use hugepage_kernel::memory::pool::{self, NodePool};
use hugepage_kernel::memory::thp;
use hugepage_kernel::{Bytes, Notes, PageSize, Pages, ReadError, Root};

use crate::{CgroupView, limits};

/// What a process of a server sees of it; `mapping`, one of this process, is the main segment. `reserve_percent`: the percentage of
/// memory that the host keeps for base pages.
pub fn observe(
    root: &Root,
    requested: Requested,
    mapping: Option<Mapping>,
    reserve_percent: u32,
    view: CgroupView<'_>,
    notes: &mut Notes,
) -> Facts {
    let mut meminfo = notes.keep(Meminfo::read(root));
    if let Some(meminfo) = &mut meminfo
        && meminfo.hugetlb.is_none()
    {
        meminfo.hugetlb = pool::memory(root).ok();
    }
    if meminfo.as_ref().is_some_and(|meminfo| meminfo.is_of_lxcfs) {
        notes.add(LXCFS);
    }
    let segment = mapping.and_then(|mapping| {
        if mapping.inaccessible > Bytes(0) {
            notes.add(RESIZABLE);
            return None;
        }
        if mapping.page_size.is_none() {
            notes.add(format!("the kernel does not show the page size of the mapping {}", mapping.name()));
        }
        let landing = notes.keep(landing(root, &mapping, thp_in_use(meminfo.as_ref()))).unwrap_or(Landing::Unknown);
        Some(Segment::of_mapping(&mapping, landing))
    });
    let huge_page_size = match &segment {
        Some(segment) if segment.landing == Landing::Hugetlb => segment.page_size,
        _ => requested.huge_page_size.or(meminfo.as_ref().and_then(|meminfo| meminfo.huge_page_size)),
    };
    let pool_state = pool_state(root, huge_page_size, meminfo.as_ref(), view, notes);
    Facts::new(requested, segment, pool_state, meminfo, reserve_percent)
}

/// The pool of `size` and the limits on it; `None` for a kernel that has no default size.
pub fn pool_state(
    root: &Root,
    size: Option<PageSize>,
    meminfo: Option<&Meminfo>,
    view: CgroupView<'_>,
    notes: &mut Notes,
) -> PoolState {
    let pool = pool_of_size(root, size, meminfo, notes);
    let limits = size.and_then(|size| limits(root, view, size, notes));
    // The server's processes inherit their policy from the postmaster, and nothing else may ask for the postmaster's.
    let process = view.and_then(Option::as_ref).map_or("self", |hierarchy| &hierarchy.process);
    let nodes = nodes_of_process(root, &pool, process, |notes| memory_policy::own(root, notes), notes);
    PoolState { huge_page_size: size, pool, limits, nodes, lock_limit: None }
}

/// The pool of `size` alone.
pub fn pool_of_size(root: &Root, size: Option<PageSize>, meminfo: Option<&Meminfo>, notes: &mut Notes) -> PoolFact {
    let Some(size) = size else {
        // Meminfo has no default size: the kernel has no huge pages, if /sys confirms it.
        let sizes = notes.keep(pool::sizes(root)).filter(Vec::is_empty);
        return sizes.map_or(PoolFact::Unknown, PoolFact::Unsupported);
    };
    let error = match pool::of_one_moment(root, size, meminfo) {
        Ok(pool) => return PoolFact::Known(pool),
        Err(error) => error,
    };
    // The kernel has its default size, also where /sys does not show it.
    let is_gone = error.is_not_found() && meminfo.is_none_or(|meminfo| meminfo.huge_page_size != Some(size));
    match pool::sizes(root) {
        Ok(sizes) if is_gone && !sizes.contains(&size) => return PoolFact::Unsupported(sizes),
        _ => notes.add(error.to_string()),
    }
    // On a kernel before 2.6.27, or with a hidden /sys, meminfo has only the pool of the default size.
    let of_default = meminfo.and_then(pool::from_meminfo).filter(|pool| pool.page_size == size);
    of_default.map_or(PoolFact::Unknown, PoolFact::Known)
}

/// The node pools of the process `pid`, or of `self`; `None` if the host has one node, or the pool has no pages.
pub fn nodes_of_process(
    root: &Root,
    pool: &PoolFact,
    pid: &str,
    policy: impl FnOnce(&mut Notes) -> MemoryPolicy,
    notes: &mut Notes,
) -> Option<NodePools> {
    let PoolFact::Known(pool) = pool else { return None };
    if pool.nr == Pages(0) || pool::has_single_node(root) || notes.keep(pool::nodes(root))?.len() < 2 {
        return None;
    }
    let pools = notes.keep(pool::node_pools(root, pool.page_size))?;
    if pools.len() < 2 {
        return None;
    }
    Some(nodes_with_allowed(root, pools, pid, policy, notes))
}

/// The shares of a pool, with the nodes that the process `pid` may use.
pub(crate) fn nodes_with_allowed(
    root: &Root,
    pools: Vec<NodePool>,
    pid: &str,
    policy: impl FnOnce(&mut Notes) -> MemoryPolicy,
    notes: &mut Notes,
) -> NodePools {
    let allowed = notes.keep(allowed_nodes(root, pid)).flatten();
    NodePools { pools, allowed, policy: policy(notes) }
}

/// Whether this host maps any shared memory by transparent huge pages, so that page tables are worth walking.
pub fn thp_in_use(meminfo: Option<&Meminfo>) -> bool {
    meminfo.and_then(|meminfo| meminfo.shmem_pmd_mapped).is_some_and(|mapped| mapped.0 > 0)
}

/// The landing of a mapping of this process. Its page tables are walked only if `thp_in_use`.
pub fn landing(root: &Root, mapping: &Mapping, thp_in_use: bool) -> Result<Landing, ReadError> {
    if mapping.page_size.is_none() {
        return Ok(Landing::Unknown);
    }
    let base = root.base_page_size()?;
    let (usage, pmd_size) = match thp_in_use && mapping.page_size == Some(base) {
        true => (smaps::usage_of(root, mapping)?, thp::pmd_size(root)?),
        false => (None, None),
    };
    Ok(Landing::of_mapping(mapping, base, usage.as_ref(), pmd_size))
}
