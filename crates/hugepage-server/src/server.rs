//! The facts on one PostgreSQL server, seen from one of its own processes.

use hugepage_assess::assessment::base_limits;
use hugepage_assess::model::{
    Facts, NodePools, PoolFact, PoolState, RESIZABLE, Requested, Segment, landing_of,
};
use hugepage_facts::{Landing, TransparentPages};
use hugepage_kernel::mapping::memory_policy::{self, allowed_nodes};
use hugepage_kernel::memory::meminfo::{LXCFS, Meminfo};
use hugepage_kernel::memory::pool::{self, NodePool};
use hugepage_kernel::{Bytes, KernelLimits, Mapping, Notes, PageSize, Pages, Root};

use crate::transparent::has_transparent_pages;
use crate::{CgroupView, limits};

/// What a process of a server sees of it; `mapping`, one of this process, is the main segment. `transparent`: what is known of its
/// transparent huge pages, asked where the host has some. `reserve_percent`: the percentage of memory that the host keeps for base pages.
pub fn observe(
    root: &Root,
    requested: Requested,
    mapping: Option<Mapping>,
    transparent: impl FnOnce(&Mapping, &Meminfo, &mut Notes) -> Option<TransparentPages>,
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
            notes.add(format!(
                "the kernel does not show the page size of the mapping {}",
                mapping.name()
            ));
        }
        let base = notes.keep(root.base_page_size());
        let in_use = meminfo
            .as_ref()
            .filter(|meminfo| has_transparent_pages(meminfo));
        let seen = in_use
            .filter(|_| mapping.page_size == base)
            .and_then(|meminfo| transparent(&mapping, meminfo, notes));
        let landing = base.map_or(Landing::Unknown, |base| {
            landing_of(&mapping, base, in_use.is_some(), seen.as_ref())
        });
        Some(Segment::of_mapping(&mapping, landing))
    });
    let huge_page_size = match &segment {
        Some(segment) if segment.landing == Landing::Hugetlb => segment.page_size,
        _ => requested
            .huge_page_size
            .or(meminfo.as_ref().and_then(|meminfo| meminfo.huge_page_size)),
    };
    let (its, meminfo_of) = (segment.as_ref(), meminfo.as_ref());
    let pool_state = pool_state(
        root,
        huge_page_size,
        &requested,
        its,
        meminfo_of,
        view,
        notes,
    );
    Facts::new(requested, segment, pool_state, meminfo, reserve_percent)
}

/// What a start finds that asks for `requested`, with pages of `size`, once the server has ended, which has `segment`. `size`: `None` on a
/// kernel that has no default size.
pub fn pool_state(
    root: &Root,
    size: Option<PageSize>,
    requested: &Requested,
    segment: Option<&Segment>,
    meminfo: Option<&Meminfo>,
    view: CgroupView<'_>,
    notes: &mut Notes,
) -> PoolState {
    let pool = pool_of_size(root, size, meminfo, notes);
    // What a start does not meet is not read.
    let kernel = if requested.sysv {
        KernelLimits::read(root)
    } else {
        KernelLimits::of_overcommit(root, meminfo.and_then(|meminfo| meminfo.overcommit))
    };
    let limits = size.and_then(|size| limits(root, view, size, notes));
    let process = view
        .and_then(Option::as_ref)
        .map_or("self", |hierarchy| &hierarchy.process);
    PoolState {
        huge_page_size: size,
        limits,
        nodes: nodes_of_process(root, &pool, process, notes),
        pool,
        lock_limit: None,
        base_limits: base_limits(&kernel, true, requested, segment, meminfo),
    }
}

/// The pool of `size` alone.
pub fn pool_of_size(
    root: &Root,
    size: Option<PageSize>,
    meminfo: Option<&Meminfo>,
    notes: &mut Notes,
) -> PoolFact {
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
    let is_gone =
        error.is_not_found() && meminfo.is_none_or(|meminfo| meminfo.huge_page_size != Some(size));
    match pool::sizes(root) {
        Ok(sizes) if is_gone && !sizes.contains(&size) => return PoolFact::Unsupported(sizes),
        _ => notes.add(error.to_string()),
    }
    // On a kernel before 2.6.27, or with a hidden /sys, meminfo has only the pool of the default size.
    let of_default = meminfo
        .and_then(pool::from_meminfo)
        .filter(|pool| pool.page_size == size);
    of_default.map_or(PoolFact::Unknown, PoolFact::Known)
}

/// The node pools of the process `pid`, or of `self`; `None` if the host has one node, or the pool has no pages and the process may use
/// all nodes.
fn nodes_of_process(
    root: &Root,
    pool: &PoolFact,
    pid: &str,
    notes: &mut Notes,
) -> Option<NodePools> {
    let pool = pool.known()?;
    if pool::has_single_node(root) || notes.keep(pool::nodes(root))?.len() < 2 {
        return None;
    }
    let pools = notes.keep(pool::node_pools(root, pool.page_size))?;
    let nodes = (pools.len() > 1).then(|| nodes_with_allowed(root, pools, pid, notes))?;
    (pool.nr > Pages(0) || nodes.is_restricted()).then_some(nodes)
}

/// The shares of a pool, with the nodes that the process `pid` may use.
pub(crate) fn nodes_with_allowed(
    root: &Root,
    pools: Vec<NodePool>,
    pid: &str,
    notes: &mut Notes,
) -> NodePools {
    NodePools {
        pools,
        allowed: notes.keep(allowed_nodes(root, pid)).flatten(),
        // The server's processes inherit it from the postmaster, and nothing else may ask for the postmaster's.
        policy: memory_policy::own(root, notes),
    }
}
