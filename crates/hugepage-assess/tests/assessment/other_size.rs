//! The facts with another page size.

use hugepage_assess::model::{Demand, Facts, OtherPool, Pending, PoolFact, PoolState};
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::next_boot::PoolAtBoot;
use hugepage_kernel::{Bytes, PageSize, Pages};

use super::{GIB, MIB, Server, known, page_size, pool};

fn gigantic(nr: u64) -> PoolState {
    let pool = Pool { page_size: page_size(GIB), ..pool(nr, nr, 0) };
    PoolState { huge_page_size: Some(page_size(GIB)), pool: known(pool), ..Server::default().facts().pool_state }
}

#[test]
fn another_page_size() {
    let facts = |pool_fact| {
        let facts = Server { pool: pool_fact, ..Server::in_base_pages() }.facts();
        let other = OtherPool { pool_state: gigantic(4), others_lack: Some(Pages(1)), can_be_set: true };
        Facts { other_pools: vec![other], next_boot: Some(PoolAtBoot::Unset), ..facts }
    };
    let mut rounded = facts(known(pool(100, 100, 0)));
    rounded.segment.as_mut().unwrap().to_reserve = Bytes(GIB + 2 * MIB);
    let after = rounded.asking_for_size(PageSize::new(GIB));
    assert_eq!((after.requested.huge_page_size, &after.pool_state), (PageSize::new(GIB), &gigantic(4)));
    assert_eq!(
        (after.segment.unwrap().to_reserve, after.others_lack, after.next_boot),
        (Bytes(GIB), Some(Pages(1)), None)
    );
    // The next start alone.
    let before = facts(known(pool(100, 100, 0)));
    let demand = Demand { requested: before.requested, max_connections: 100, shared_memory: Bytes(2 * GIB) };
    let pending = Pending::Changed(demand, before.pool_state.clone());
    let after = Facts { pending, ..before.clone() }.asking_for_size(PageSize::new(GIB));
    assert_eq!((after.requested, &after.pool_state), (before.requested, &before.pool_state));
    let Pending::Changed(demand, pool_state) = after.pending else { unreachable!() };
    assert_eq!((demand.requested.huge_page_size, pool_state), (PageSize::new(GIB), gigantic(4)));
    // Back to the default size, of which meminfo shows the pool.
    let mut unsupported = facts(PoolFact::Unsupported(Vec::new()));
    unsupported.requested.huge_page_size = PageSize::new(16 * GIB);
    let meminfo = unsupported.meminfo.as_mut().unwrap();
    (meminfo.huge_pages_total, meminfo.huge_pages_free) = (Some(Pages(100)), Some(Pages(70)));
    let after = unsupported.asking_for_size(None);
    let found = after.pool_state.pool.known().unwrap();
    assert_eq!((found.nr, found.free, after.requested.huge_page_size), (Pages(100), Pages(70), None));
}
