//! The step of a whole host, and the facts with another page size.

use hugepage_assess::advice::plan::Step;
use hugepage_assess::advice::recommendation::Effect;
use hugepage_assess::assessment::host::PoolNeed;
use hugepage_assess::assessment::{Severity, Sizing};
use hugepage_assess::model::{Demand, Facts, OtherPool, PagesOfStrangers, Pending, PoolFact, PoolState};
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::next_boot::PoolAtBoot;
use hugepage_kernel::{Bytes, PageSize, Pages};

use super::{GIB, MIB, Server, known, page_size, pool};

fn set_pool(size: u64, pages: u64) -> Step {
    Step::SetPool { size: page_size(size), is_default: true, pages: Pages(pages), after_stop: false, leaves: None }
}

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

/// The pool of a whole host: its step and its row.
#[test]
fn the_pool_for_all_servers() {
    let sizing = |nr, needs: &[(u64, bool)], available| {
        let pool_now = pool(nr, nr, 0);
        let server = Server { pool: known(pool_now.clone()), available, ..Server::default() }.facts();
        let capacity = server.capacity(&pool_now).unwrap();
        let need = |(at, &(pages, is_running)): (usize, &(u64, bool))| {
            let (running, held) = (if is_running { Pages(pages) } else { Pages(0) }, Pages(0));
            PoolNeed { name: format!("pg{at}"), pages: Pages(pages), running, held, movable: Bytes(0), is_running }
        };
        let needs = needs.iter().enumerate().map(need).collect();
        (Sizing::new(&pool_now, needs, PagesOfStrangers::default(), Some(capacity)), pool_now)
    };
    let (alone, now) = sizing(100, &[(300, true)], None);
    assert_eq!(alone.step(&now, true), Some(set_pool(2 * MIB, 300)));
    let row = alone.row(&now, true, Severity::Warning, "; qemu holds 7").unwrap();
    assert_eq!((row.current.as_deref(), row.recommended.as_deref()), (Some("100"), Some("300")));
    assert_eq!(row.command.as_deref(), Some("sysctl -w vm.nr_hugepages=300"));
    assert_eq!(row.takes_effect, Effect::ServerRestart);
    assert_eq!(
        row.reason,
        "pg0 needs 300 pages of 2 MB, other processes hold 0, and the pool's 100 pages are 200 too few; qemu holds 7 \
         (all servers seen here; `hugepage-sidecar size` counts all of the host)."
    );
    let (enough, now) = sizing(300, &[(300, true)], None);
    assert_eq!((enough.step(&now, true), enough.row(&now, true, Severity::Warning, "")), (None, None));
    let (several, now) = sizing(0, &[(300, true), (70, false), (2, false)], None);
    assert_eq!(several.by_stopped().as_deref(), Some("of which 72 for 2 stopped servers"));
    let reason = several.row(&now, true, Severity::Notice, "").unwrap().reason;
    assert!(
        reason.starts_with("The 3 instances of this host need 372 pages of 2 MB (of which 72 for 2 stopped"),
        "{reason}"
    );
    let (one, _) = sizing(0, &[(300, true), (70, false)], None);
    assert_eq!(one.by_stopped().as_deref(), Some("of which 70 for 1 stopped server"));
    assert_eq!(alone.by_stopped(), None);
    // More than 80% of memory, as the host has it.
    let (beyond, now) = sizing(0, &[(7000, true)], Some(16 * GIB));
    let Some(Step::SetPool { leaves, .. }) = beyond.step(&now, true) else { unreachable!() };
    assert_eq!(leaves, Some((Bytes(16 * GIB - 7000 * 2 * MIB), 20)));
    let reason = beyond.row(&now, true, Severity::Warning, "").unwrap().reason;
    assert!(reason.ends_with("; a pool of 7000 pages leaves 2384 MB to base pages, less than 20% (all servers seen here; `hugepage-sidecar size` counts all of the host)."), "{reason}");
}
