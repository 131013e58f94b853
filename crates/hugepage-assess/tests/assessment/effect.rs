//! What steps change in the facts, as the kernel and the server do it: the proof that what is advised helps.

use hugepage_assess::advice::plan::{Plan, Step};
use hugepage_assess::assessment::{Outlook, Start, Status};
use hugepage_assess::model::{
    Demand, Facts, HugePages, LockLimit, NodePools, Pending, PoolFact, PoolState, Requested,
    Segment,
};
use hugepage_facts::{Landing, Past};
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::next_boot::PoolAtBoot;
use hugepage_kernel::{Bytes, PageSize, Pages};

/// The status after all steps.
pub fn after(plan: &Plan, facts: &Facts) -> Status {
    Status::assess(
        plan.steps
            .iter()
            .fold(facts.clone(), |facts, step| apply(step, facts)),
    )
}

/// How bad a status is: its verdict, then whether the server lacks the huge pages that it asks for, then all of its findings,
/// then what the next start or a crash would lose.
pub fn gravity(status: &Status) -> (u64, bool, u64, u8) {
    let severities = status.findings.iter().map(|(severity, _)| *severity as u64);
    let outlook = lost(status.forecast.outlook).max(status.crash_outlook().map_or(0, lost));
    let may_request =
        status.facts.requested.huge_pages != HugePages::Off || status.facts.may_request_next();
    let lacks_pages = may_request && status.facts.landing() != Landing::Hugetlb;
    (
        status.verdict().0 as u64,
        lacks_pages,
        severities.sum(),
        outlook,
    )
}

/// How much is lost, to compare two outlooks.
pub fn lost(outlook: Outlook) -> u8 {
    match outlook {
        Outlook::Hugetlb => 0,
        Outlook::Unknown => 1,
        Outlook::Mixed => 2,
        Outlook::Base => 3,
        Outlook::Fails => 4,
    }
}

/// The facts after one step.
pub fn apply(step: &Step, mut facts: Facts) -> Facts {
    match step {
        Step::RaiseLimit { path, to } => in_each(&mut facts, |pool_state| {
            let Some(limits) = &mut pool_state.limits else {
                return;
            };
            let levels = limits.fault.iter_mut().chain(&mut limits.reservation);
            levels
                .filter(|level| level.path == *path)
                .for_each(|level| level.limit = level.limit.max(*to));
        }),
        Step::FreePages { size, pages, .. } => {
            facts.strangers.pages = facts.strangers.pages.saturating_sub(*pages);
            on_each_pool(&mut facts, *size, |pool, _| release(pool, *pages));
        }
        Step::Reduce { to, .. } => match (&mut facts.pending, &mut facts.segment) {
            (Pending::Changed(demand, _), _) => {
                demand.shared_memory = demand.shared_memory.min(*to)
            }
            (_, Some(segment)) => {
                segment.size = segment.size.min(*to);
                segment.to_reserve = segment.to_reserve.min(*to);
            }
            _ => {}
        },
        Step::SetPool { size, pages, .. } => {
            on_each_pool(&mut facts, *size, |pool, _| set_pool(pool, *pages))
        }
        Step::SetShmLimit { .. } => in_each(&mut facts, |pool_state| pool_state.lock_limit = None),
        Step::RaiseMemlock { to } => in_each(&mut facts, |pool_state| {
            if let Some(LockLimit::Memlock { limit, .. }) = &mut pool_state.lock_limit {
                *limit = (*limit).max(*to);
            }
        }),
        Step::SetHugePagesTry => asked_next(&mut facts).huge_pages = HugePages::Try,
        Step::SetMmap => asked_next(&mut facts).sysv = false,
        Step::ReplaceMemoryTarget => {
            let requested = asked_next(&mut facts);
            requested.product = requested.product.with_memory_target(false);
        }
        Step::Restart => return restart(facts),
        Step::SetPoolAtBoot { pages, .. } => {
            facts.next_boot = Some(PoolAtBoot::Set(*pages, "/etc/sysctl.conf".to_owned()));
        }
    }
    facts
}

/// Changes the ground of the running server, and of its next start if that has one of its own.
fn in_each(facts: &mut Facts, mut change: impl FnMut(&mut PoolState)) {
    change(&mut facts.pool_state);
    if let Pending::Changed(_, pool_state) = &mut facts.pending {
        change(pool_state);
    }
}

fn on_each_pool(
    facts: &mut Facts,
    size: PageSize,
    mut change: impl FnMut(&mut Pool, &mut Option<NodePools>),
) {
    in_each(facts, |pool_state| match &mut pool_state.pool {
        PoolFact::Known(pool) if pool.page_size == size => change(pool, &mut pool_state.nodes),
        _ => {}
    });
}

fn asked_next(facts: &mut Facts) -> &mut Requested {
    match &mut facts.pending {
        Pending::Changed(demand, _) => &mut demand.requested,
        _ => &mut facts.requested,
    }
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

/// Pages go back, surplus pages out of the pool.
fn release(pool: &mut Pool, own: Pages) {
    let promised = own.min(pool.resv.unwrap_or_default());
    let gone = own.min(pool.surplus.unwrap_or_default());
    pool.resv = pool.resv.map(|resv| resv.saturating_sub(promised));
    pool.free = pool
        .free
        .saturating_add(own.saturating_sub(promised))
        .saturating_sub(gone);
    pool.nr = pool.nr.saturating_sub(gone);
    pool.surplus = pool.surplus.map(|surplus| surplus.saturating_sub(gone));
}

/// A server of base pages starts again: all that it has of the pool is what a part of it had.
fn restart(mut facts: Facts) -> Facts {
    let own = facts.own();
    let own_bytes = facts
        .pool_state
        .huge_page_size
        .map_or(Bytes(0), |size| size.times(own));
    give_back(&mut facts, own);
    let Some(segment) = facts.segment.take() else {
        return facts;
    };
    let (requested, size, mut pool_state) =
        match std::mem::replace(&mut facts.pending, Pending::Unchanged) {
            Pending::Unchanged => (
                facts.requested,
                segment.to_reserve,
                facts.pool_state.clone(),
            ),
            Pending::Changed(
                Demand {
                    requested,
                    shared_memory,
                    ..
                },
                pool_state,
            ) => (requested, shared_memory, pool_state),
            stays => {
                return Facts {
                    pending: stays,
                    segment: Some(segment),
                    ..facts
                };
            }
        };
    if let Some(limits) = &mut pool_state.limits {
        for level in limits.fault.iter_mut().chain(&mut limits.reservation) {
            level.usage = level.usage_without(own_bytes);
            level.promised = level.promised_with(own_bytes, Bytes(0));
        }
    }
    let start = Start {
        requested,
        size: Some(size),
        pool_state: &pool_state,
        own: Pages(0),
    };
    let forecast = start.forecast();
    let is_there = forecast.outlook == Outlook::Unknown && forecast.missing == Some(Pages(0));
    let lands = forecast.outlook == Outlook::Hugetlb || is_there;
    let pages = pool_state
        .huge_page_size
        .zip(forecast.needed)
        .filter(|_| lands);
    let size = pages.map_or(size, |(page, needed)| page.times(needed));
    facts.segment = Some(Segment {
        size,
        to_reserve: size,
        in_huge_pages: if lands { size } else { Bytes(0) },
        page_size: Some(pages.map_or(PageSize::base(), |(page, _)| page)),
        landing: if lands {
            Landing::Hugetlb
        } else {
            Landing::Base
        },
        ..segment
    });
    if let (PoolFact::Known(pool), Some((_, needed))) = (&mut pool_state.pool, pages) {
        pool.resv = pool.resv.map(|resv| resv.saturating_add(needed));
    }
    if let (Some(limits), true) = (&mut pool_state.limits, lands) {
        limits
            .reservation
            .iter_mut()
            .for_each(|level| level.usage = level.usage.saturating_add(size));
        limits
            .fault
            .iter_mut()
            .for_each(|level| level.promised = level.promised_with(Bytes(0), size));
    }
    let loss = facts.past.loss.take().filter(|_| !lands);
    facts.past = Past {
        cause_at_start: forecast.cause.filter(|_| !lands),
        loss,
        ..facts.past
    };
    Facts {
        requested,
        pool_state,
        requested_may_differ: false,
        ..facts
    }
}

/// The running server gives its pages back.
fn give_back(facts: &mut Facts, own: Pages) {
    let Some(size) = facts.pool_state.huge_page_size else {
        return;
    };
    on_each_pool(facts, size, |pool, nodes| {
        let mut touched = own.saturating_sub(pool.resv.unwrap_or_default());
        let usable: Vec<u32> = nodes
            .iter()
            .flat_map(|nodes| nodes.usable())
            .map(|share| share.node)
            .collect();
        let shares = nodes.iter_mut().flat_map(|nodes| &mut nodes.pools);
        for share in shares.filter(|share| usable.contains(&share.node)) {
            let back = touched.min(share.pool.nr.saturating_sub(share.pool.free));
            share.pool.free = share.pool.free.saturating_add(back);
            touched = touched.saturating_sub(back);
        }
        release(pool, own);
    });
}
