//! What each step changes in the facts, and nothing else.

use hugepage_assess::advice::plan::Step;
use hugepage_assess::advice::recommendation::Effect;
use hugepage_assess::assessment::host::{PoolNeed, Room};
use hugepage_assess::assessment::{Severity, Sizing};
use hugepage_assess::model::{
    Cause, Demand, Facts, Landing, Loss, Lost, NodePools, OtherPool, PageKind, PagesOfStrangers, Past, Pending,
    PoolFact, PoolState,
};
use hugepage_kernel::mapping::memory_policy::MemoryPolicy;
use hugepage_kernel::memory::pool::{NodePool, Pool};
use hugepage_kernel::next_boot::PoolAtBoot;
use hugepage_kernel::{Bytes, PageSize, Pages};

use super::{GIB, MIB, Server, known, page_size, pool};

/// nr, free, resv and surplus of the pool of the running server.
fn counters(facts: &Facts) -> [u64; 4] {
    let pool = facts.pool_state.pool.known().unwrap();
    [pool.nr, pool.free, pool.resv.unwrap(), pool.surplus.unwrap()].map(|pages| pages.0)
}

/// The facts of a server whose pool /proc/meminfo shows.
fn with_meminfo(server: Server) -> Facts {
    let mut facts = server.facts();
    let (pool, meminfo) = (facts.pool_state.pool.known().unwrap().clone(), facts.meminfo.as_mut().unwrap());
    (meminfo.huge_pages_total, meminfo.huge_pages_free) = (Some(pool.nr), Some(pool.free));
    (meminfo.huge_pages_rsvd, meminfo.huge_pages_surp) = (pool.resv, pool.surplus);
    facts
}

fn set_pool(size: u64, pages: u64) -> Step {
    Step::SetPool { size: page_size(size), is_default: true, pages: Pages(pages), after_stop: false, leaves: None }
}

fn gigantic(nr: u64) -> PoolState {
    let pool = Pool { page_size: page_size(GIB), ..pool(nr, nr, 0) };
    PoolState { huge_page_size: Some(page_size(GIB)), pool: known(pool), ..Server::default().facts().pool_state }
}

fn pending(facts: &Facts, bytes: u64, pool_state: PoolState) -> Pending {
    let huge_page_size = pool_state.huge_page_size.filter(|size| *size != page_size(2 * MIB));
    let requested = hugepage_assess::model::Requested { huge_page_size, ..facts.requested };
    Pending::Changed(Demand { requested, max_connections: 100, shared_memory: Bytes(bytes) }, pool_state)
}

#[test]
fn a_pool_and_what_meminfo_shows_of_it() {
    let before = || with_meminfo(Server { pool: known(pool(100, 40, 20)), ..Server::in_base_pages() });
    let shown = |facts: &Facts| {
        let meminfo = facts.meminfo.as_ref().unwrap();
        [meminfo.huge_pages_total, meminfo.huge_pages_free, meminfo.huge_pages_rsvd, meminfo.huge_pages_surp]
            .map(|pages| pages.unwrap().0)
    };
    for (pages, expected) in [(200, [200, 140, 20, 0]), (70, [80, 20, 20, 10]), (100, [100, 40, 20, 0])] {
        let after = set_pool(2 * MIB, pages).after(before());
        assert_eq!((counters(&after), shown(&after)), (expected, expected), "{pages}");
        assert_eq!(after.meminfo.unwrap().mem_total, before().meminfo.unwrap().mem_total);
    }
    let after = set_pool(GIB, 3).after(before());
    assert_eq!((counters(&after), shown(&after)), ([100, 40, 20, 0], [100, 40, 20, 0]), "of another size");
    let strangers = PagesOfStrangers { pages: Pages(50), largest: None };
    let free = Step::FreePages { size: page_size(2 * MIB), pages: Pages(30), strangers };
    let after = free.after(before());
    assert_eq!((counters(&after), shown(&after)), ([100, 50, 0, 0], [100, 50, 0, 0]));
    assert_eq!(after.strangers.pages, Pages(20));
}

/// The kernel spreads new pages evenly, and takes free ones evenly as far as a node has them: nr and free of each.
#[test]
fn pools_of_nodes() {
    let after = |shares: &[(u64, u64)], pages| {
        let share = |(node, &(nr, free)): (u32, &(u64, u64))| NodePool { node, pool: pool(nr, free, 0), memory: None };
        let pools = (0..).zip(shares).map(share).collect();
        let nodes = NodePools { pools, allowed: None, policy: MemoryPolicy::Any };
        let sum = |of: fn(&(u64, u64)) -> u64| shares.iter().map(of).sum();
        let of_host = pool(sum(|share| share.0), sum(|share| share.1), 0);
        let server = Server { pool: known(of_host), nodes: Some(nodes), ..Server::in_base_pages() };
        let after = set_pool(2 * MIB, pages).after(server.facts());
        let nodes = after.pool_state.nodes.unwrap().pools;
        nodes.iter().map(|share| (share.pool.nr.0, share.pool.free.0)).collect::<Vec<_>>()
    };
    assert_eq!(after(&[(0, 0), (0, 0), (0, 0)], 7), [(3, 3), (2, 2), (2, 2)]);
    assert_eq!(after(&[(1, 0), (5, 5)], 8), [(2, 1), (6, 6)]);
    assert_eq!(after(&[(3, 0), (2, 2), (2, 1)], 4), [(3, 0), (0, 0), (1, 0)]);
}

#[test]
fn less_shared_memory() {
    let reduce = Step::Reduce { to: Bytes(GIB / 2), shared_buffers: None };
    let segment = reduce.after(Server::in_base_pages().facts()).segment.unwrap();
    assert_eq!([segment.size, segment.reserved, segment.to_reserve], [Bytes(GIB / 2); 3]);
    let facts = Server::default().facts();
    let changed = pending(&facts, GIB, facts.pool_state.clone());
    let after = reduce.after(Facts { pending: changed, ..facts });
    let Pending::Changed(demand, _) = after.pending else { unreachable!() };
    assert_eq!((demand.shared_memory, after.segment.unwrap().size), (Bytes(GIB / 2), Bytes(GIB)));
}

#[test]
fn a_restart() {
    let restart = |facts: Facts| Step::Restart.after(facts);
    let kind = |landing| PageKind { landing, size: None };
    let lost = Lost::Pages { was: kind(Landing::Hugetlb), is: kind(Landing::Base) };
    let loss = Some(Loss { at: std::time::UNIX_EPOCH, lost });
    let past = Past { loss, cause_at_start: Some(Cause::PoolTaken), needed_at_start: Some(Pages(9)) };
    let boot = Some(PoolAtBoot::Unset);
    let base = |pool| {
        let server = Server { pool: known(pool), ..Server::in_base_pages() };
        Facts { past: past.clone(), next_boot: boot.clone(), ..server.facts() }
    };
    // It lands: the pages are promised, and what was lost is there again.
    let after = restart(base(pool(600, 600, 0)));
    assert_eq!((after.landing(), counters(&after)), (Landing::Hugetlb, [600, 600, 512, 0]));
    assert_eq!((after.past.loss, after.past.cause_at_start, after.next_boot), (None, None, boot.clone()));
    // It does not.
    let after = restart(base(pool(100, 100, 0)));
    assert_eq!((after.landing(), counters(&after)), (Landing::Base, [100, 100, 0, 0]));
    assert_eq!((after.past.loss, after.past.cause_at_start), (past.loss.clone(), Some(Cause::PoolTooSmall)));
    assert_eq!(after.segment.unwrap().in_huge_pages, Bytes(0));
    // Its own pages come back first.
    let server = Server { pool: known(pool(600, 20, 10)), ..Server::default() };
    assert_eq!(counters(&restart(server.facts())), [600, 522, 512, 0]);
    let surplus = Pool { surplus: Some(Pages(2)), ..pool(600, 84, 0) };
    let server = Server { pool: known(surplus), ..Server::default() };
    assert_eq!(counters(&restart(server.facts())), [598, 594, 512, 0]);
}

/// The start of the configuration on disk, in pages of the same size or of another.
#[test]
fn a_restart_with_the_configuration_on_disk() {
    let facts = || Facts {
        next_boot: Some(PoolAtBoot::Unset),
        ..Server { pool: known(pool(1200, 688, 0)), ..Server::default() }.facts()
    };
    let with =
        |bytes, pool_state| Step::Restart.after(Facts { pending: pending(&facts(), bytes, pool_state), ..facts() });
    // The pool that was read for it has the pages of the running server still taken.
    let after = with(GIB + 2 * MIB, facts().pool_state);
    assert_eq!(
        (after.landing(), counters(&after), after.segment_size()),
        (Landing::Hugetlb, [1200, 1200, 513, 0], Some(Bytes(GIB + 2 * MIB)))
    );
    assert_eq!((after.pending.clone(), after.next_boot), (Pending::Unchanged, Some(PoolAtBoot::Unset)));
    let after = with(GIB + 2 * MIB, gigantic(2));
    assert_eq!((after.landing(), after.page_size(), &after.next_boot), (Landing::Hugetlb, PageSize::new(GIB), &None));
    assert_eq!((counters(&after), after.requested.huge_page_size), ([2, 2, 2, 0], PageSize::new(GIB)));
    // What can't start changes nothing.
    let refused = Step::Restart.after(Facts { pending: Pending::Refused(String::new()), ..facts() });
    assert_eq!((refused.landing(), refused.pending), (Landing::Hugetlb, Pending::Refused(String::new())));
}

#[test]
fn another_page_size() {
    let other = |others_lack| OtherPool { pool_state: gigantic(4), others_lack, can_be_set: true };
    let facts = |pending: Option<Pending>| {
        let facts = with_meminfo(Server { pool: known(pool(100, 100, 0)), ..Server::in_base_pages() });
        let pending = pending.unwrap_or(Pending::Unchanged);
        Facts { pending, other_pools: vec![other(Some(Pages(1)))], next_boot: Some(PoolAtBoot::Unset), ..facts }
    };
    let to_gigantic = Step::SetHugePageSize { size: page_size(GIB), available: Pages(3), needed: Pages(1) };
    let mut rounded = facts(None);
    rounded.segment.as_mut().unwrap().to_reserve = Bytes(GIB + 2 * MIB);
    let after = to_gigantic.after(rounded);
    assert_eq!((counters(&after), after.requested.huge_page_size), ([4, 4, 0, 0], PageSize::new(GIB)));
    assert_eq!(
        (after.segment.unwrap().to_reserve, after.others_lack, after.next_boot),
        (Bytes(GIB), Some(Pages(1)), None)
    );
    let before = facts(None);
    let changed = pending(&before, 2 * GIB, before.pool_state.clone());
    let after = to_gigantic.after(facts(Some(changed)));
    assert_eq!((counters(&after), after.requested.huge_page_size), ([100, 100, 0, 0], None));
    let Pending::Changed(demand, pool_state) = after.pending else { unreachable!() };
    assert_eq!((demand.requested.huge_page_size, pool_state), (PageSize::new(GIB), gigantic(4)));
    // Back to the default size, of which meminfo shows the pool.
    let mut unsupported = facts(None);
    unsupported.requested.huge_page_size = PageSize::new(16 * GIB);
    unsupported.pool_state.pool = PoolFact::Unsupported(Vec::new());
    let after = Step::SetDefaultPageSize.after(unsupported);
    assert_eq!((counters(&after), after.requested.huge_page_size), ([100, 100, 0, 0], None));
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
            PoolNeed { name: format!("pg{at}"), pages: Pages(pages), running, held, is_running }
        };
        let needs = needs.iter().enumerate().map(need).collect();
        let room = Room { mem_total: Bytes(16 * GIB), elsewhere: Bytes(0), capacity };
        (Sizing::new(&pool_now, needs, PagesOfStrangers::default(), Some(room)), pool_now)
    };
    let (alone, now) = sizing(100, &[(300, true)], None);
    assert_eq!(alone.step(&now, true), Some(set_pool(2 * MIB, 300)));
    let row = alone.row(&now, true, Severity::Warning, "; qemu holds 7").unwrap();
    assert_eq!((row.current.as_deref(), row.recommended.as_deref()), (Some("100"), Some("300")));
    assert_eq!(row.command.as_deref(), Some("sysctl -w vm.nr_hugepages=300"));
    assert_eq!(row.takes_effect, Effect::ServerRestart);
    assert_eq!(
        row.reason,
        "pg0 needs 300 pages of 2 MB, other processes hold 0, and the pool's 100 pages are 200 too few; qemu holds 7."
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
    assert!(reason.ends_with("; a pool of 7000 pages leaves 2384 MB to base pages, less than 20%."), "{reason}");
}
