//! What each step changes in the facts.

use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::memory::pool::{Pool, from_meminfo};
use hugepage_kernel::next_boot::PoolAtBoot;
use hugepage_kernel::{Bytes, PageSize, Pages};

use super::{Step, nodes};
use crate::advice::command;
use crate::assessment::{Forecast, Outlook};
use crate::model::{
    Demand, Facts, HugePages, Landing, LockLimit, NodePools, PagesOfStrangers, Past, Pending, PoolFact, PoolState,
    Product, Requested, Segment,
};

impl Step {
    /// The facts if the step had changed the host and the server.
    pub fn after(&self, facts: Facts) -> Facts {
        match self {
            Self::RaiseLimit { path, to } => facts.in_each_pool_state(|pool_state| {
                let Some(limits) = &mut pool_state.limits else { return };
                let levels = limits.fault.iter_mut().chain(&mut limits.reservation);
                levels.filter(|level| level.path == *path).for_each(|level| level.limit = level.limit.max(*to));
                let memory = limits.memory.iter_mut().filter(|level| level.path == *path);
                memory.for_each(|level| level.limit = level.limit.max(*to));
            }),
            Self::FreePages { size, pages, strangers } => {
                let free = |pool: &mut Pool| release(pool, *pages);
                let meminfo = facts.meminfo.map(|meminfo| with_pool(meminfo, *size, free));
                let left = PagesOfStrangers { pages: strangers.pages.saturating_sub(*pages), ..strangers.clone() };
                let facts = Facts { meminfo, strangers: left, ..facts };
                facts.on_each_pool(*size, |pool, nodes| {
                    if let Some(nodes) = nodes {
                        nodes::release(nodes, pages.saturating_sub(pool.resv.unwrap_or_default()));
                    }
                    free(pool);
                })
            }
            Self::Reduce { to, .. } => {
                if let Pending::Changed(demand, pool_state) = facts.pending {
                    let demand = Demand { shared_memory: demand.shared_memory.min(*to), ..demand };
                    return Facts { pending: Pending::Changed(demand, pool_state), ..facts };
                }
                let segment = facts.segment.map(|segment| {
                    let size = segment.size.min(*to);
                    Segment { size, reserved: size, to_reserve: segment.to_reserve.min(*to), ..segment }
                });
                Facts { segment, ..facts }
            }
            Self::SetPool { size, pages, .. } => {
                let meminfo = facts.meminfo.map(|meminfo| with_pool(meminfo, *size, |pool| set_pool(pool, *pages)));
                Facts { meminfo, ..facts }.on_each_pool(*size, |pool, nodes| {
                    let before = pool.clone();
                    set_pool(pool, *pages);
                    if let Some(nodes) = nodes {
                        nodes::spread(nodes, &before, pool);
                    }
                })
            }
            Self::SetNodePool { node, size, pages, .. } => {
                let mut change = None;
                let facts = facts.on_each_pool(*size, |pool, nodes| {
                    if let Some(set) = nodes.as_mut().and_then(|nodes| nodes::set(nodes, *node, *pages)) {
                        set.apply(pool);
                        change = Some(set);
                    }
                });
                let Some(change) = change else { return facts };
                let meminfo = facts.meminfo.map(|meminfo| with_pool(meminfo, *size, |pool| change.apply(pool)));
                Facts { meminfo, ..facts }
            }
            Self::SetShmLimit { .. } => facts.in_each_pool_state(|pool_state| pool_state.lock_limit = None),
            Self::RaiseMemlock { to, .. } => facts.in_each_pool_state(|pool_state| {
                if let Some(LockLimit::Memlock { limit, .. } | LockLimit::Either { limit: Some(limit), .. }) =
                    &mut pool_state.lock_limit
                {
                    *limit = (*limit).max(*to);
                }
            }),
            Self::SetHugePagesTry => facts.asking_next(|requested| requested.huge_pages = HugePages::Try),
            Self::SetMmap => facts.asking_next(|requested| requested.sysv = false),
            Self::SetDefaultPageSize => facts.asking_for_size(None),
            Self::SetHugePageSize { size, .. } => facts.asking_for_size(Some(*size)),
            Self::ReplaceMemoryTarget => facts.asking_next(|requested| {
                if let Product::Oracle { memory_target, .. } = &mut requested.product {
                    *memory_target = false;
                }
            }),
            Self::Restart => restart(facts),
            Self::SetPoolAtBoot { pages, .. } => {
                let file = command::SYSCTL_FILE.to_owned();
                Facts { next_boot: Some(PoolAtBoot::Set { pages: *pages, file }), ..facts }
            }
        }
    }
}

impl Facts {
    /// The facts with another ground of the running server, and of its next start if that has one of its own.
    fn in_each_pool_state(self, mut change: impl FnMut(&mut PoolState)) -> Self {
        let (mut pool_state, mut pending) = (self.pool_state, self.pending);
        change(&mut pool_state);
        if let Pending::Changed(_, pool_state) = &mut pending {
            change(pool_state);
        }
        Self { pool_state, pending, ..self }
    }

    /// The facts with other pools of `size`, and with other shares of the nodes.
    fn on_each_pool(self, size: PageSize, mut change: impl FnMut(&mut Pool, &mut Option<NodePools>)) -> Self {
        self.in_each_pool_state(|pool_state| match &mut pool_state.pool {
            PoolFact::Known(pool) if pool.page_size == size => change(pool, &mut pool_state.nodes),
            _ => {}
        })
    }

    /// The facts with another demand of the next start.
    pub(super) fn asking_next(self, change: impl FnOnce(&mut Requested)) -> Self {
        let (mut requested, mut pending) = (self.requested, self.pending);
        change(match &mut pending {
            Pending::Changed(demand, _) => &mut demand.requested,
            _ => &mut requested,
        });
        Self { requested, pending, ..self }
    }
}

/// The host's memory with another pool, if that is the one of the default size.
fn with_pool(mut meminfo: Meminfo, size: PageSize, change: impl FnOnce(&mut Pool)) -> Meminfo {
    if meminfo.huge_page_size == Some(size)
        && let Some(mut pool) = from_meminfo(&meminfo)
    {
        change(&mut pool);
        (meminfo.huge_pages_total, meminfo.huge_pages_free) = (Some(pool.nr), Some(pool.free));
        (meminfo.huge_pages_rsvd, meminfo.huge_pages_surp) = (pool.resv, pool.surplus);
    }
    meminfo
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

/// The facts while the server is stopped, and has given its pages back.
fn stopped(facts: Facts) -> Facts {
    let own = facts.own();
    let own_bytes = facts.pool_state.huge_page_size.map_or(Bytes(0), |size| size.times(own));
    let mut pool_state = facts.pool_state;
    if let PoolFact::Known(pool) = &mut pool_state.pool {
        if let Some(nodes) = &mut pool_state.nodes {
            nodes::release(nodes, own.saturating_sub(pool.resv.unwrap_or_default()));
        }
        release(pool, own);
    }
    if let Some(limits) = &mut pool_state.limits {
        for level in limits.fault.iter_mut().chain(&mut limits.reservation) {
            level.usage = level.usage_without(own_bytes);
            level.promised = level.promised_with(own_bytes, Bytes(0));
        }
        limits.memory.iter_mut().for_each(|level| level.huge = level.huge.map(|huge| huge.saturating_sub(own_bytes)));
    }
    Facts { pool_state, ..facts }
}

impl Forecast {
    /// Whether a plan may count on huge pages.
    pub(super) fn lands(&self) -> bool {
        match self.outlook {
            Outlook::Hugetlb => true,
            // All that can be seen is there; the verdict after it says that more can't be.
            Outlook::Unknown => self.missing == Some(Pages(0)),
            Outlook::Mixed | Outlook::Base | Outlook::Fails => false,
        }
    }
}

fn restart(facts: Facts) -> Facts {
    let facts = stopped(facts);
    let facts_size = facts.pool_state.huge_page_size;
    let to_reserve = facts.segment.as_ref().map(|segment| segment.to_reserve);
    let (requested, to_reserve, pool_state) = match facts.pending {
        Pending::Unchanged => (facts.requested, to_reserve, facts.pool_state),
        Pending::Changed(demand, pool_state) if pool_state.huge_page_size != facts.pool_state.huge_page_size => {
            (demand.requested, Some(demand.shared_memory), pool_state)
        }
        Pending::Changed(demand, _) => (demand.requested, Some(demand.shared_memory), facts.pool_state),
        Pending::Refused(_) | Pending::Unknown => return facts,
    };
    let forecast = Forecast::of_start(&requested, to_reserve, &pool_state, Pages(0));
    let lands = forecast.lands();
    let past = Past { cause_at_start: if lands { None } else { forecast.cause }, ..facts.past };
    let pages = pool_state.huge_page_size.zip(forecast.needed).filter(|_| lands);
    let next_boot = facts.next_boot.filter(|_| facts_size == pool_state.huge_page_size);
    let facts = Facts { requested, pool_state, pending: Pending::Unchanged, past, next_boot, ..facts };
    match (facts.segment, to_reserve) {
        (Some(segment), Some(size)) => started(Facts { segment: None, ..facts }, segment.name, size, pages),
        (segment, _) => Facts { segment, ..facts },
    }
}

/// The facts with a segment called `name` in `pages` huge pages, or in base pages for `size`.
fn started(facts: Facts, name: String, size: Bytes, pages: Option<(PageSize, Pages)>) -> Facts {
    let size = pages.map_or(size, |(page, needed)| page.times(needed));
    let segment = Some(Segment {
        size,
        reserved: size,
        to_reserve: size,
        in_huge_pages: if pages.is_some() { size } else { Bytes(0) },
        page_size: Some(pages.map_or(PageSize::base(), |(page, _)| page)),
        landing: if pages.is_some() { Landing::Hugetlb } else { Landing::Base },
        name,
    });
    let Some((_, needed)) = pages else { return Facts { segment, ..facts } };
    let mut pool_state = facts.pool_state;
    if let PoolFact::Known(pool) = &mut pool_state.pool {
        pool.resv = pool.resv.map(|resv| resv.saturating_add(needed));
    }
    if let Some(limits) = &mut pool_state.limits {
        limits.reservation.iter_mut().for_each(|level| level.usage = level.usage.saturating_add(size));
        limits.fault.iter_mut().for_each(|level| level.promised = level.promised_with(Bytes(0), size));
        limits.memory.iter_mut().for_each(|level| level.huge = level.huge.map(|huge| huge.saturating_add(size)));
    }
    Facts { segment, pool_state, past: Past { loss: None, ..facts.past }, ..facts }
}
