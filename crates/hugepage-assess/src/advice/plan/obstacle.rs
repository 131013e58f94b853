//! What stands between a server and huge pages, one obstacle after the other.

use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::{Bytes, PageSize, Pages};

use super::Step;
use crate::advice::shared_buffers;
use crate::assessment::limits::{Excess, excesses};
use crate::assessment::{Capacity, Share, Status};
use crate::model::{Cause, Landing, LockLimit, NodePools, Pending, PoolFact, PoolState, Product, Requested};

/// More obstacles than any server has.
const MAX_STEPS: usize = 16;

/// The steps that remove all obstacles; `None` if one of them can't be removed.
pub fn all(status: &Status) -> Option<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    let mut at = status.clone();
    while steps.len() < MAX_STEPS {
        let Some(step) = next(&at, status)? else { return Some(steps) };
        // A step that did not help will not help again.
        if steps.contains(&step) {
            return None;
        }
        at = Status::assess(step.after(at.facts));
        steps.push(step);
    }
    None
}

/// The next step; `Some(None)` if nothing is in the way any more, `None` if something is that no step removes.
fn next(at: &Status, before: &Status) -> Option<Option<Step>> {
    let (requested, pool_state, own) = start(at);
    let forecast = &at.forecast;
    // Base pages by choice are no reason for more than a start needs.
    if at.forecast.cause != Some(Cause::ShmLimit) && prevents_start(before) && before.cause == Some(Cause::Disabled) {
        return Some(None);
    }
    let has_no_pool = forecast.cause == Some(Cause::PageSizeUnsupported);
    if let Some(Cause::Disabled | Cause::MemoryTarget | Cause::SysvSharedMemory | Cause::PageSizeUnsupported) =
        forecast.cause
    {
        let setting = setting(&requested, forecast.cause?);
        return if has_no_pool { Step::to_other_pool(at).or(setting) } else { setting }.map(Some);
    }
    let (Some(size), Some(needed)) = (forecast.huge_page_size, forecast.needed) else { return None };
    let own_pool = pool_state.pool.known().and_then(|pool| Share::of_server(pool, own));
    // A pool that lacks a few pages is easier to enlarge.
    let lacks_most = own_pool.is_some_and(|share| share.guaranteed.saturating_add(share.guaranteed) < needed);
    if (lacks_most || forecast.cause == Some(Cause::NodeLimit))
        && let Some(step) = Step::to_other_pool(at)
    {
        return Some(Some(step));
    }
    let (bytes, own_bytes) = (size.times(needed), size.times(own));
    let limits = pool_state.limits.as_ref();
    let mut found = at.excesses();
    found.extend(limits.map(|limits| excesses(limits, bytes, own_bytes)).unwrap_or_default());
    if let Some(step) = raise(&found) {
        return Some(Some(step));
    }
    if let Some(limit) = limits.and_then(|limits| limits.tightest_reservation_without(own_bytes))
        && limit.room_without(own_bytes) < bytes
    {
        let to = limit.usage_without(own_bytes).saturating_add(bytes);
        return Some(Some(Step::RaiseLimit { path: limit.path.clone(), to }));
    }
    if let Some(lock) = pool_state.lock_limit.filter(|lock| lock.refuses(bytes) || lock.may_refuse(bytes)) {
        let refused = match lock {
            LockLimit::Memlock { others, .. } => {
                return Some(Some(Step::RaiseMemlock { to: bytes.saturating_add(others) }));
            }
            // Kernels of both kinds let the group have them.
            LockLimit::Either { gid, .. } => LockLimit::ShmGroup { gid },
            other => other,
        };
        return refused.sysctl().map(|(name, value)| Some(Step::SetShmLimit { name, value }));
    }
    let PoolFact::Known(pool) = &pool_state.pool else { return None };
    let share = Share::of_server(pool, own)?;
    let target = |nodes: &NodePools| nodes.target(pool, needed, own, at.facts.reserve_percent);
    if let Some(target) = pool_state.nodes.as_ref().and_then(target).filter(|target| target.more > Pages(0)) {
        let capacity = capacity(before, pool)?;
        let all = pool.persistent().saturating_add(target.more);
        return (target.fits && all <= capacity.most).then_some(Some(Step::SetNodePool {
            node: target.node,
            size,
            pages: target.pages,
            after_stop: all > capacity.now,
            leaves: capacity.leaves_less(all, size),
        }));
    }
    if share.guaranteed >= needed {
        return Some(before_a_crash(at, before.capacity));
    }
    let strangers = &at.facts.strangers;
    if strangers.pages > Pages(0) && at.facts.pool_state.huge_page_size == Some(size) {
        let pages = strangers.pages.min(needed.saturating_sub(share.guaranteed));
        return Some(Some(Step::FreePages { size, pages, strangers: strangers.clone() }));
    }
    let pages = match at.to_land {
        Some(pages) if at.facts.pool_state.huge_page_size == Some(size) => pages,
        _ => share.others.saturating_add(needed),
    };
    let capacity = capacity(before, pool)?;
    if pages > capacity.most {
        let reduce = || reduce(at, capacity, size, pages.saturating_sub(needed));
        return Step::to_other_pool(at).or_else(reduce).map(Some);
    }
    let is_default = before.facts.is_default(size);
    // Never fewer than are in use or promised now, even if the server is to need fewer.
    let pages = pages.max(in_use(before, size));
    Some(Some(Step::SetPool {
        size,
        is_default,
        pages,
        after_stop: pages > capacity.now,
        leaves: capacity.leaves_less(pages, size),
    }))
}

/// Whether the next start fails, whatever pages it asks for.
pub(super) const fn prevents_start(status: &Status) -> bool {
    matches!(status.forecast.cause, Some(Cause::ShmLimit))
}

/// Shared memory of the next start that fits beside so many other pages.
fn reduce(at: &Status, capacity: Capacity, size: PageSize, beside: Pages) -> Option<Step> {
    let to = size.times(capacity.comfortable(beside).saturating_sub(beside));
    let (requested, now) = match &at.facts.pending {
        Pending::Changed(demand, _) => (demand.requested, Some(demand.shared_memory)),
        _ => (at.facts.requested, at.facts.segment_size()),
    };
    let shared_buffers = shared_buffers::largest(to, requested.shared_buffers, now?);
    match requested.product {
        Product::PostgreSql => Some(Step::Reduce { to, shared_buffers: Some(shared_buffers?) }),
        Product::Oracle { .. } => (to > Bytes(0)).then_some(Step::Reduce { to, shared_buffers: None }),
    }
}

/// The pages of `size` that are in use or promised to all but strangers; zero if unknown, or of another pool.
fn in_use(status: &Status, size: PageSize) -> Pages {
    let pool = status.facts.pool_state.pool.known().filter(|pool| pool.page_size == size);
    let in_use = pool.and_then(|pool| pool.in_use()).unwrap_or_default();
    in_use.saturating_sub(status.facts.strangers.pages)
}

/// Raises the first of these limits to all that they need of it, with room to grow.
pub(super) fn raise(excesses: &[Excess]) -> Option<Step> {
    let path = &excesses.first()?.path;
    let to = excesses.iter().filter(|excess| excess.path == *path).map(|excess| excess.advised).max()?;
    Some(Step::RaiseLimit { path: path.clone(), to })
}

fn capacity(before: &Status, pool: &Pool) -> Option<Capacity> {
    match before.facts.pool_state.huge_page_size == Some(pool.page_size) {
        true => before.capacity,
        false => before.facts.capacity(pool),
    }
}

/// The pool for a server in huge pages that a restart would serve and a crash would not.
fn before_a_crash(at: &Status, capacity: Option<Capacity>) -> Option<Step> {
    let (size, pages, capacity) = (at.facts.pool_state.huge_page_size?, at.to_land?, capacity?);
    let is_short = at.facts.landing() == Landing::Hugetlb && at.share?.guaranteed < at.needed?;
    (is_short && pages <= capacity.most).then(|| Step::SetPool {
        size,
        is_default: at.facts.is_default(size),
        pages,
        after_stop: false,
        leaves: capacity.leaves_less(pages, size),
    })
}

fn setting(requested: &Requested, cause: Cause) -> Option<Step> {
    match cause {
        Cause::Disabled => Some(Step::SetHugePagesTry),
        Cause::MemoryTarget => Some(Step::ReplaceMemoryTarget),
        Cause::SysvSharedMemory => Some(Step::SetMmap),
        _ => requested.huge_page_size.map(|_| Step::SetDefaultPageSize),
    }
}

/// What the start that the outlook speaks of asks for, what it finds, and what the server has of that pool.
pub(super) fn start(status: &Status) -> (Requested, PoolState, Pages) {
    let facts = &status.facts;
    match &facts.pending {
        Pending::Changed(demand, pool_state) => {
            let own = if pool_state.huge_page_size == facts.pool_state.huge_page_size { status.own } else { Pages(0) };
            (demand.requested, pool_state.clone(), own)
        }
        _ => (facts.requested, facts.pool_state.clone(), status.own),
    }
}
