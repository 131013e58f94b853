//! What each step changes in the facts.

use hugepage_kernel::cgroups::cgroup::CgroupLimits;
use hugepage_kernel::memory::pool::{Pool, from_meminfo};
use hugepage_kernel::{Bytes, PageSize, Pages};

use super::{Step, nodes};
use crate::assessment::{Forecast, Outlook};
use crate::model::{
    Asked, Facts, HugePages, KeptPages, Landing, LockLimit, NodePools, Pending, PoolFact, PoolState, Product, Segment,
};

impl Step {
    /// Changes `facts` as the step would change the host and the server.
    pub fn apply(&self, facts: &mut Facts) {
        match self {
            Self::RaiseLimit { path, to } => {
                for limits in all_limits(facts) {
                    let levels = limits.fault.iter_mut().chain(&mut limits.reservation);
                    levels.filter(|level| level.path == *path).for_each(|level| level.limit = level.limit.max(*to));
                    let memory = limits.memory.iter_mut().filter(|level| level.path == *path);
                    memory.for_each(|level| level.limit = level.limit.max(*to));
                }
            }
            Self::Reduce(to) => {
                if let Some(segment) = &mut facts.segment {
                    segment.size = segment.size.min(*to);
                    segment.reserved = segment.size;
                    segment.to_reserve = segment.to_reserve.min(*to);
                }
            }
            Self::SetPool { size, pages, .. } => {
                let default = facts.meminfo.as_mut().filter(|meminfo| meminfo.huge_page_size == Some(*size));
                if let Some((meminfo, mut pool)) =
                    default.and_then(|meminfo| from_meminfo(meminfo).map(|pool| (meminfo, pool)))
                {
                    set_pool(&mut pool, *pages);
                    (meminfo.huge_pages_total, meminfo.huge_pages_free) = (Some(pool.nr), Some(pool.free));
                    (meminfo.huge_pages_rsvd, meminfo.huge_pages_surp) = (pool.resv, pool.surplus);
                }
                for (pool, nodes) in all_pools(facts).filter(|(pool, _)| pool.page_size == *size) {
                    let before = pool.clone();
                    set_pool(pool, *pages);
                    if let Some(nodes) = nodes {
                        nodes::spread(nodes, &before, pool);
                    }
                }
            }
            Self::SetNodePool { node, size, pages, .. } => {
                let mut change = None;
                for (pool, nodes) in all_pools(facts).filter(|(pool, _)| pool.page_size == *size) {
                    let set = nodes.as_mut().and_then(|nodes| nodes::set(nodes, *node, *pages));
                    if let Some(set) = set {
                        set.apply(pool);
                        change = Some(set);
                    }
                }
                let default = facts.meminfo.as_mut().filter(|meminfo| meminfo.huge_page_size == Some(*size));
                if let Some((meminfo, change)) = default.zip(change)
                    && let Some(mut pool) = from_meminfo(meminfo)
                {
                    change.apply(&mut pool);
                    (meminfo.huge_pages_total, meminfo.huge_pages_free) = (Some(pool.nr), Some(pool.free));
                    meminfo.huge_pages_surp = pool.surplus;
                }
            }
            Self::SetShmGroup(_) => facts.lock_limits().for_each(|lock| *lock = None),
            Self::RaiseMemlock(to) => {
                for lock in facts.lock_limits() {
                    if let Some(LockLimit::Memlock { limit, .. } | LockLimit::Either { limit: Some(limit), .. }) = lock
                    {
                        *limit = (*limit).max(*to);
                    }
                }
            }
            Self::SetHugePagesTry => asked_next(facts).huge_pages = HugePages::Try,
            Self::SetMmap => asked_next(facts).sysv = false,
            Self::SetDefaultPageSize => {
                asked_next(facts).huge_page_size = None;
                let default = default_ground(facts);
                match &mut facts.pending {
                    Pending::Changed(_, ground) => *ground = default,
                    _ => set_ground(facts, default),
                }
            }
            Self::ReplaceMemoryTarget => {
                if let Product::Oracle { memory_target, .. } = &mut asked_next(facts).product {
                    *memory_target = false;
                }
            }
            Self::SetIoMethodWorker => facts.kept_at_crash = KeptPages::default(),
            Self::Restart => restart(facts),
        }
    }
}

/// What the next start will ask for.
fn asked_next(facts: &mut Facts) -> &mut Asked {
    match &mut facts.pending {
        Pending::Changed(demand, _) => &mut demand.asked,
        _ => &mut facts.asked,
    }
}

fn all_limits(facts: &mut Facts) -> impl Iterator<Item = &mut CgroupLimits> {
    let pending = match &mut facts.pending {
        Pending::Changed(_, ground) => ground.limits.as_mut(),
        _ => None,
    };
    facts.limits.as_mut().into_iter().chain(pending)
}

/// Each pool, and its shares of the nodes.
fn all_pools(facts: &mut Facts) -> impl Iterator<Item = (&mut Pool, &mut Option<NodePools>)> {
    let pending = match &mut facts.pending {
        Pending::Changed(_, ground) => Some((&mut ground.pool, &mut ground.nodes)),
        _ => None,
    };
    let known = |(fact, nodes)| match fact {
        &mut PoolFact::Known(ref mut pool) => Some((pool, nodes)),
        _ => None,
    };
    std::iter::once((&mut facts.pool, &mut facts.nodes)).chain(pending).filter_map(known)
}

/// `set_max_huge_pages` in mm/hugetlb.c: pages in use stay, as surplus above the number.
fn set_pool(pool: &mut Pool, pages: Pages) {
    let touched = pool.nr.saturating_sub(pool.free);
    let stay = pool.in_use().unwrap_or(pool.nr);
    // Of no page none was promised.
    pool.resv = pool.promised();
    pool.nr = pages.max(stay);
    pool.free = pool.nr.saturating_sub(touched);
    pool.surplus = Some(pool.nr.saturating_sub(pages));
}

/// The server's pages go back, surplus pages out of the pool.
fn release(pool: &mut Pool, own: Pages) {
    let promised = own.min(pool.resv.unwrap_or_default());
    let gone = own.min(pool.surplus.unwrap_or_default());
    pool.resv = pool.resv.map(|resv| resv.saturating_sub(promised));
    pool.free = pool.free.saturating_add(own.saturating_sub(promised)).saturating_sub(gone);
    pool.nr = pool.nr.saturating_sub(gone);
    pool.surplus = pool.surplus.map(|surplus| surplus.saturating_sub(gone));
}

/// Touched pages that nothing else is promised, as those of rings.
fn give_back(pool: &mut Pool, pages: Pages) {
    let pages = pages.min(pool.nr.saturating_sub(pool.free));
    let gone = pages.min(pool.surplus.unwrap_or_default());
    pool.free = pool.free.saturating_add(pages.saturating_sub(gone));
    pool.nr = pool.nr.saturating_sub(gone);
    pool.surplus = pool.surplus.map(|surplus| surplus.saturating_sub(gone));
}

fn default_ground(facts: &Facts) -> PoolState {
    let pool = facts.meminfo.as_ref().and_then(from_meminfo);
    PoolState {
        huge_page_size: facts.meminfo.as_ref().and_then(|meminfo| meminfo.huge_page_size),
        pool: pool.map_or(PoolFact::Unknown, PoolFact::Known),
        limits: None,
        nodes: None,
        lock_limit: None,
    }
}

fn set_ground(facts: &mut Facts, ground: PoolState) {
    PoolState {
        huge_page_size: facts.huge_page_size,
        pool: facts.pool,
        limits: facts.limits,
        nodes: facts.nodes,
        lock_limit: facts.lock_limit,
    } = ground;
}

fn restart(facts: &mut Facts) {
    let own = facts.own();
    let own_bytes = facts.huge_page_size.map_or(Bytes(0), |size| size.times(own));
    if let PoolFact::Known(pool) = &mut facts.pool {
        if let Some(nodes) = &mut facts.nodes {
            nodes::release(nodes, own.saturating_sub(pool.resv.unwrap_or_default()));
        }
        release(pool, own);
        let kept = facts.kept_at_crash;
        give_back(pool, Pages(kept.at_least.0.saturating_mul(kept.crashes)));
        facts.kept_at_crash.crashes = 0;
    }
    for level in facts.limits.iter_mut().flat_map(|limits| limits.fault.iter_mut().chain(&mut limits.reservation)) {
        level.usage = level.usage_without(own_bytes);
        level.promised = level.promised_with(own_bytes, Bytes(0));
    }
    for level in facts.limits.iter_mut().flat_map(|limits| &mut limits.memory) {
        level.huge = level.huge.map(|huge| huge.saturating_sub(own_bytes));
    }
    let mut to_reserve = facts.segment.as_ref().map(|segment| segment.to_reserve);
    match std::mem::replace(&mut facts.pending, Pending::Unchanged) {
        Pending::Unchanged => {}
        Pending::Changed(demand, ground) => {
            facts.asked = demand.asked;
            to_reserve = Some(demand.shared_memory);
            if ground.huge_page_size != facts.huge_page_size {
                set_ground(facts, ground);
            }
        }
        unknown => {
            facts.pending = unknown;
            return;
        }
    }
    let forecast = Forecast::of(&facts.asked, to_reserve, &facts.ground(), Pages(0));
    let lands = match forecast.outlook {
        Outlook::Hugetlb => true,
        // All that can be seen is there; the verdict after it says that more can't be.
        Outlook::Unknown => forecast.missing == Some(Pages(0)),
        Outlook::Mixed | Outlook::Base | Outlook::Fails => false,
    };
    facts.cause_at_start = if lands { None } else { forecast.cause };
    let (Some(segment), Some(size)) = (&mut facts.segment, to_reserve) else { return };
    let (Some(page), Some(needed), true) = (facts.huge_page_size, forecast.needed, lands) else {
        *segment = Segment {
            size,
            reserved: size,
            to_reserve: size,
            in_huge_pages: Bytes(0),
            page_size: Some(PageSize::base()),
            landing: Landing::Base,
            name: std::mem::take(&mut segment.name),
        };
        return;
    };
    let bytes = page.times(needed);
    let name = std::mem::take(&mut segment.name);
    *segment = Segment {
        size: bytes,
        reserved: bytes,
        to_reserve: bytes,
        in_huge_pages: bytes,
        page_size: Some(page),
        landing: Landing::Hugetlb,
        name,
    };
    facts.loss = None;
    if let PoolFact::Known(pool) = &mut facts.pool {
        pool.resv = pool.resv.map(|resv| resv.saturating_add(needed));
    }
    if let Some(limits) = &mut facts.limits {
        limits.reservation.iter_mut().for_each(|level| level.usage = level.usage.saturating_add(bytes));
        limits.fault.iter_mut().for_each(|level| level.promised = level.promised_with(Bytes(0), bytes));
        limits.memory.iter_mut().for_each(|level| level.huge = level.huge.map(|huge| huge.saturating_add(bytes)));
    }
}
