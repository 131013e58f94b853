//! What steps change in the shares of the NUMA nodes.

use hugepage_kernel::Pages;
use hugepage_kernel::memory::pool::Pool;

use crate::model::NodePools;

/// By how much a pool has grown.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// New pages, all of them free.
    new: Pages,
    /// Surplus pages that the pool keeps from now on.
    kept: Pages,
}

impl Growth {
    /// Applies the growth to a pool of which the node's is a share.
    pub fn apply(self, pool: &mut Pool) {
        // Of no page none was promised.
        pool.resv = pool.promised();
        pool.nr = pool.nr.saturating_add(self.new);
        pool.free = pool.free.saturating_add(self.new);
        pool.surplus = pool.surplus.map(|surplus| surplus.saturating_sub(self.kept));
    }
}

/// Raises the pool of `node` to `pages`; `None` if there is no such node. Surplus pages count first, as in
/// `set_max_huge_pages` in mm/hugetlb.c.
pub fn set(nodes: &mut NodePools, node: u32, pages: Pages) -> Option<Growth> {
    let pool = &mut nodes.pools.iter_mut().find(|share| share.node == node)?.pool;
    let more = pages.saturating_sub(pool.persistent());
    let kept = more.min(pool.surplus.unwrap_or_default());
    let growth = Growth { new: more.saturating_sub(kept), kept };
    let resv = pool.resv;
    growth.apply(pool);
    pool.resv = resv;
    Some(growth)
}

/// Spreads a change of the host's pool evenly over all nodes, as the kernel does.
pub fn spread(nodes: &mut NodePools, before: &Pool, after: &Pool) {
    let mut pools: Vec<_> = nodes.pools.iter_mut().map(|share| &mut share.pool).collect();
    evenly(
        &mut pools,
        after.nr.saturating_sub(before.nr),
        |_| Pages(u64::MAX),
        |pool, new| {
            pool.nr = pool.nr.saturating_add(new);
            pool.free = pool.free.saturating_add(new);
        },
    );
    evenly(
        &mut pools,
        before.nr.saturating_sub(after.nr),
        |pool| pool.free.min(pool.nr),
        |pool, gone| {
            pool.nr = pool.nr.saturating_sub(gone);
            pool.free = pool.free.saturating_sub(gone);
        },
    );
    let surplus = |pool: &Pool| pool.surplus.unwrap_or_default();
    evenly(&mut pools, surplus(before).saturating_sub(surplus(after)), surplus, |pool, kept| {
        pool.surplus = pool.surplus.map(|surplus| surplus.saturating_sub(kept));
    });
    evenly(&mut pools, surplus(after).saturating_sub(surplus(before)), Pool::persistent, |pool, new| {
        pool.surplus = pool.surplus.map(|surplus| surplus.saturating_add(new));
    });
}

/// Gives each of `pools` its part of `pages`, no more than it has `room` for.
fn evenly(pools: &mut [&mut Pool], pages: Pages, room: impl Fn(&Pool) -> Pages, take: impl Fn(&mut Pool, Pages)) {
    // Those with the least room first, so that the others take the rest.
    pools.sort_by_key(|pool| room(pool));
    let (Pages(mut rest), mut left) = (pages, pools.len() as u64);
    for pool in pools {
        let part = Pages(rest.div_ceil(left)).min(room(pool));
        take(pool, part);
        (rest, left) = (rest - part.0, left - 1);
    }
}

/// The `touched` pages of a server that stops are free again on the nodes that it may use.
pub fn release(nodes: &mut NodePools, mut touched: Pages) {
    let usable: Vec<_> = nodes.usable().iter().map(|share| share.node).collect();
    for share in nodes.pools.iter_mut().filter(|share| usable.contains(&share.node)) {
        let back = touched.min(share.pool.nr.saturating_sub(share.pool.free));
        share.pool.free = share.pool.free.saturating_add(back);
        touched = touched.saturating_sub(back);
    }
}
