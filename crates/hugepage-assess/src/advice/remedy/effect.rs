//! What each step changes in the facts.

use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::memory::pool::{Pool, from_meminfo};
use hugepage_kernel::{Bytes, PageSize, Pages};

use super::{Step, nodes};
use crate::assessment::{Forecast, Outlook};
use crate::model::{
    Asked, Facts, HugePages, KeptPages, Landing, LockLimit, NodePools, Past, Pending, PoolFact, PoolState, Product,
    Segment,
};

impl Step {
    /// The facts if the step had changed the host and the server.
    pub fn after(&self, facts: Facts) -> Facts {
        match self {
            Self::RaiseLimit { path, to } => facts.on_each_ground(|ground| {
                let Some(limits) = &mut ground.limits else { return };
                let levels = limits.fault.iter_mut().chain(&mut limits.reservation);
                levels.filter(|level| level.path == *path).for_each(|level| level.limit = level.limit.max(*to));
                let memory = limits.memory.iter_mut().filter(|level| level.path == *path);
                memory.for_each(|level| level.limit = level.limit.max(*to));
            }),
            Self::Reduce(to) => {
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
            Self::SetShmGroup(_) => facts.on_each_ground(|ground| ground.lock_limit = None),
            Self::RaiseMemlock(to) => facts.on_each_ground(|ground| {
                if let Some(LockLimit::Memlock { limit, .. } | LockLimit::Either { limit: Some(limit), .. }) =
                    &mut ground.lock_limit
                {
                    *limit = (*limit).max(*to);
                }
            }),
            Self::SetHugePagesTry => facts.asking_next(|asked| asked.huge_pages = HugePages::Try),
            Self::SetMmap => facts.asking_next(|asked| asked.sysv = false),
            Self::SetDefaultPageSize => {
                let facts = facts.asking_next(|asked| asked.huge_page_size = None);
                let default = default_ground(&facts);
                match facts.pending {
                    Pending::Changed(demand, _) => Facts { pending: Pending::Changed(demand, default), ..facts },
                    _ => Facts { ground: default, ..facts },
                }
            }
            Self::ReplaceMemoryTarget => facts.asking_next(|asked| {
                if let Product::Oracle { memory_target, .. } = &mut asked.product {
                    *memory_target = false;
                }
            }),
            Self::SetIoMethodWorker => Facts { kept_at_crash: KeptPages::default(), ..facts },
            Self::Restart => restart(facts),
        }
    }
}

impl Facts {
    /// The facts with another ground of the running server, and of its next start if that has one of its own.
    fn on_each_ground(self, mut change: impl FnMut(&mut PoolState)) -> Self {
        let (mut ground, mut pending) = (self.ground, self.pending);
        change(&mut ground);
        if let Pending::Changed(_, ground) = &mut pending {
            change(ground);
        }
        Self { ground, pending, ..self }
    }

    /// The facts with other pools of `size`, and with other shares of the nodes.
    fn on_each_pool(self, size: PageSize, mut change: impl FnMut(&mut Pool, &mut Option<NodePools>)) -> Self {
        self.on_each_ground(|ground| match &mut ground.pool {
            PoolFact::Known(pool) if pool.page_size == size => change(pool, &mut ground.nodes),
            _ => {}
        })
    }

    /// The facts with another demand of the next start.
    fn asking_next(self, change: impl FnOnce(&mut Asked)) -> Self {
        let (mut asked, mut pending) = (self.asked, self.pending);
        change(match &mut pending {
            Pending::Changed(demand, _) => &mut demand.asked,
            _ => &mut asked,
        });
        Self { asked, pending, ..self }
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

/// The facts while the server is stopped, and has given its pages back.
fn stopped(facts: Facts) -> Facts {
    let own = facts.own();
    let own_bytes = facts.ground.huge_page_size.map_or(Bytes(0), |size| size.times(own));
    let (mut ground, mut kept_at_crash) = (facts.ground, facts.kept_at_crash);
    if let PoolFact::Known(pool) = &mut ground.pool {
        if let Some(nodes) = &mut ground.nodes {
            nodes::release(nodes, own.saturating_sub(pool.resv.unwrap_or_default()));
        }
        release(pool, own);
        give_back(pool, Pages(kept_at_crash.at_least.0.saturating_mul(kept_at_crash.crashes)));
        kept_at_crash.crashes = 0;
    }
    if let Some(limits) = &mut ground.limits {
        for level in limits.fault.iter_mut().chain(&mut limits.reservation) {
            level.usage = level.usage_without(own_bytes);
            level.promised = level.promised_with(own_bytes, Bytes(0));
        }
        limits.memory.iter_mut().for_each(|level| level.huge = level.huge.map(|huge| huge.saturating_sub(own_bytes)));
    }
    Facts { ground, kept_at_crash, ..facts }
}

fn restart(facts: Facts) -> Facts {
    let facts = stopped(facts);
    let to_reserve = facts.segment.as_ref().map(|segment| segment.to_reserve);
    let (asked, to_reserve, ground) = match facts.pending {
        Pending::Unchanged => (facts.asked, to_reserve, facts.ground),
        Pending::Changed(demand, ground) if ground.huge_page_size != facts.ground.huge_page_size => {
            (demand.asked, Some(demand.shared_memory), ground)
        }
        Pending::Changed(demand, _) => (demand.asked, Some(demand.shared_memory), facts.ground),
        Pending::Refused(_) | Pending::Unknown => return facts,
    };
    let forecast = Forecast::of(&asked, to_reserve, &ground, Pages(0));
    let lands = match forecast.outlook {
        Outlook::Hugetlb => true,
        // All that can be seen is there; the verdict after it says that more can't be.
        Outlook::Unknown => forecast.missing == Some(Pages(0)),
        Outlook::Mixed | Outlook::Base | Outlook::Fails => false,
    };
    let past = Past { cause_at_start: if lands { None } else { forecast.cause }, ..facts.past };
    let pages = ground.huge_page_size.zip(forecast.needed).filter(|_| lands);
    let facts = Facts { asked, ground, pending: Pending::Unchanged, past, ..facts };
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
    let mut ground = facts.ground;
    if let PoolFact::Known(pool) = &mut ground.pool {
        pool.resv = pool.resv.map(|resv| resv.saturating_add(needed));
    }
    if let Some(limits) = &mut ground.limits {
        limits.reservation.iter_mut().for_each(|level| level.usage = level.usage.saturating_add(size));
        limits.fault.iter_mut().for_each(|level| level.promised = level.promised_with(Bytes(0), size));
        limits.memory.iter_mut().for_each(|level| level.huge = level.huge.map(|huge| huge.saturating_add(size)));
    }
    Facts { segment, ground, past: Past { loss: None, ..facts.past }, ..facts }
}
