//! The facts themselves: what settings mean, what a running server has of its next start, and who else has pages.

use hugepage_assess::model::{
    Demand, Facts, HugePages, LockLimit, NodePools, PagesOfStrangers, Pending, PoolFact, PoolState,
    Product, Requested, UseLargePages,
};
use hugepage_facts::PoolHolder;
use hugepage_kernel::mapping::memory_policy::MemoryPolicy;
use hugepage_kernel::memory::pool::{NodePool, Pool};
use hugepage_kernel::{Bytes, PageSize, Pages};

use super::{GIB, MIB, Server, known, page_size, pool};

#[test]
fn values_of_settings() {
    use HugePages::{Off, On, Try};
    let postgresql = [
        "try", "TRY", "on", "true", "yes", "1", "off", "false", "no", "0", "maybe", "",
    ];
    let expected = [Some(Try), Some(Try), Some(On), Some(On), Some(On), Some(On)];
    assert_eq!(postgresql.map(HugePages::parse)[..6], expected);
    assert_eq!(
        postgresql.map(HugePages::parse)[6..],
        [Some(Off), Some(Off), Some(Off), Some(Off), None, None]
    );
    for (value, expected, huge_pages) in [
        ("TRUE", UseLargePages::True, Try),
        ("false", UseLargePages::False, Off),
        ("Only", UseLargePages::Only, On),
        ("AUTO", UseLargePages::Auto, Try),
        ("AUTO_ONLY", UseLargePages::AutoOnly, On),
    ] {
        assert_eq!(UseLargePages::parse(value), Some(expected));
        assert_eq!(expected.huge_pages(), huge_pages);
    }
    assert_eq!(UseLargePages::parse("try"), None);
    let oracle = |memory_target, use_large_pages, is_asm| Requested {
        product: Product::Oracle {
            memory_target,
            may_mix: true,
            use_large_pages,
            is_asm,
        },
        ..Server::default().facts().requested
    };
    let postgresql = Server::default().facts().requested;
    let sysv = Requested {
        sysv: true,
        ..postgresql
    };
    let answers = |asked: Requested| {
        [
            asked.never_in_huge_pages(),
            asked.asks_kernel(),
            asked.is_automatic_asm(),
            asked.may_mix(),
        ]
    };
    assert_eq!(answers(postgresql), [false; 4]);
    assert_eq!(answers(sysv), [true, false, false, false]);
    assert_eq!(
        answers(oracle(false, None, true)),
        [false, false, false, true]
    );
    assert_eq!(
        answers(oracle(true, Some(UseLargePages::Auto), false)),
        [true, true, false, true]
    );
    assert_eq!(
        answers(oracle(true, Some(UseLargePages::AutoOnly), true)),
        [true; 4]
    );
    let product = oracle(false, None, true).product;
    assert_eq!(
        product.with_memory_target(true),
        oracle(true, None, true).product
    );
    assert_eq!(
        Product::PostgreSql.with_memory_target(true),
        Product::PostgreSql
    );
}

/// What the running server has of what a next start asks for: 512 pages of 2 MB, or 1 GB of base pages.
#[test]
fn what_a_next_start_lacks() {
    let huge = || {
        Server {
            pool: known(pool(2000, 2000, 512)),
            ..Server::default()
        }
        .facts()
    };
    let base = || {
        Server {
            size: GIB - 8192,
            ..Server::in_base_pages()
        }
        .facts()
    };
    let demand = |facts: &Facts, bytes| {
        let requested = facts.requested;
        Demand {
            requested,
            max_connections: 100,
            shared_memory: Bytes(bytes),
        }
    };
    let met = |facts: Facts, bytes| facts.current_start().is_met_by(&demand(&facts, bytes));
    assert_eq!(
        [GIB, GIB - MIB, GIB + MIB, GIB - 2 * MIB].map(|size| met(huge(), size)),
        [true, true, false, false]
    );
    assert_eq!(
        [GIB - 8192, GIB].map(|size| met(base(), size)),
        [true, false]
    );
    let other = Demand {
        requested: Requested {
            huge_pages: HugePages::Off,
            ..huge().requested
        },
        ..demand(&huge(), GIB)
    };
    assert!(!huge().current_start().is_met_by(&other));
    assert!(
        !Facts {
            segment: None,
            ..huge()
        }
        .current_start()
        .is_met_by(&demand(&huge(), GIB))
    );
    assert_eq!(huge().current_start().page_size(), PageSize::new(2 * MIB));

    let lack = |facts: Facts, pending| facts.current_start().lack(&pending).0;
    let changed = |facts: Facts, change: fn(&mut Demand, &mut PoolState)| {
        let (mut demand, mut pool_state) = (demand(&facts, 2 * GIB), facts.pool_state.clone());
        change(&mut demand, &mut pool_state);
        lack(facts, Pending::Changed(demand, pool_state))
    };
    assert_eq!(
        (
            lack(huge(), Pending::Unchanged),
            lack(base(), Pending::Unchanged)
        ),
        (0, 512)
    );
    assert_eq!(
        (changed(huge(), |_, _| {}), changed(base(), |_, _| {})),
        (512, 1024)
    );
    assert_eq!(
        changed(base(), |_, pool_state| pool_state.huge_page_size =
            Some(page_size(GIB))),
        512
    );
    assert_eq!(
        changed(base(), |demand, _| demand.requested.huge_pages =
            HugePages::Off),
        0
    );
    assert_eq!(
        changed(base(), |demand, _| demand.requested.sysv = true),
        1024,
        "with mmap, which is advised"
    );
    let in_files = |demand: &mut Demand, _: &mut PoolState| {
        demand.requested.product = Product::Oracle {
            memory_target: true,
            may_mix: true,
            use_large_pages: None,
            is_asm: false,
        };
    };
    assert_eq!(changed(base(), in_files), 0);
    let mut unknown = base();
    unknown.pool_state.pool = PoolFact::Unknown;
    assert_eq!(lack(unknown, Pending::Unchanged), 0);
    // Off until a restart of which nothing is known.
    let off = || Facts {
        requested: Requested {
            huge_pages: HugePages::Off,
            ..base().requested
        },
        ..base()
    };
    assert_eq!(
        (
            lack(off(), Pending::Unchanged),
            lack(off(), Pending::Unknown)
        ),
        (0, 512)
    );
}

#[test]
fn limits_on_locked_memory() {
    let (gib, more) = (Bytes(GIB), Bytes(GIB + 1));
    let memlock = |others| LockLimit::Memlock {
        limit: Bytes(2 * GIB),
        others: Bytes(others),
    };
    let either = |limit: Option<u64>| LockLimit::Either {
        gid: 1,
        limit: limit.map(Bytes),
    };
    for (limit, size, refuses, may_refuse) in [
        (memlock(GIB), gib, false, false),
        (memlock(GIB), more, true, false),
        (LockLimit::ShmGroup { gid: 1 }, Bytes(1), true, false),
        (LockLimit::ShmGroup { gid: 1 }, Bytes(0), false, false),
        (either(Some(GIB)), gib, false, true),
        (either(Some(GIB)), more, true, false),
        (either(None), more, false, true),
        (LockLimit::Shmmni { limit: 1 }, Bytes(0), true, false),
        (LockLimit::Unexplained, gib, false, true),
    ] {
        assert_eq!(
            (limit.refuses(size), limit.may_refuse(size)),
            (refuses, may_refuse),
            "{limit:?} {size}"
        );
    }
    // Other instances of the user take part of the limit.
    let facts = Server::default().facts();
    let alone = PoolState {
        lock_limit: Some(memlock(0)),
        ..facts.pool_state
    };
    let beside = alone.beside(gib);
    assert_eq!(beside.lock_limit, Some(memlock(GIB)));
    let demand = Demand {
        requested: facts.requested,
        max_connections: 1,
        shared_memory: gib,
    };
    let Pending::Changed(_, of_pending) = Pending::Changed(demand, beside).beside(Bytes(5)) else {
        panic!()
    };
    assert_eq!(of_pending.lock_limit, Some(memlock(5)));
    let group = PoolState {
        lock_limit: Some(LockLimit::ShmGroup { gid: 1 }),
        ..of_pending
    };
    assert_eq!(
        group.beside(gib).lock_limit,
        Some(LockLimit::ShmGroup { gid: 1 })
    );
}

#[test]
fn nodes_that_a_server_may_use() {
    let share = |node| NodePool {
        node,
        pool: Pool { ..pool(1, 1, 0) },
        memory: None,
    };
    let nodes = |allowed: Option<&[u32]>, policy| NodePools {
        pools: vec![share(0), share(1), share(2)],
        allowed: allowed.map(<[u32]>::to_vec),
        policy,
    };
    for (allowed, policy, usable, is_restricted, may_be_fewer) in [
        (None, MemoryPolicy::Any, vec![0, 1, 2], false, true),
        (
            Some(&[0, 1, 2][..]),
            MemoryPolicy::Any,
            vec![0, 1, 2],
            false,
            false,
        ),
        (
            Some(&[0, 1, 2]),
            MemoryPolicy::Unknown,
            vec![0, 1, 2],
            false,
            true,
        ),
        (Some(&[0, 1]), MemoryPolicy::Any, vec![0, 1], true, false),
        (
            Some(&[0, 1]),
            MemoryPolicy::Bind(vec![1, 2]),
            vec![1],
            true,
            false,
        ),
        (
            Some(&[0, 1]),
            MemoryPolicy::Bind(vec![2]),
            vec![0, 1],
            true,
            false,
        ),
    ] {
        let nodes = nodes(allowed, policy);
        let found: Vec<_> = nodes.usable().iter().map(|share| share.node).collect();
        assert_eq!(
            (found, nodes.is_restricted(), nodes.may_be_fewer()),
            (usable, is_restricted, may_be_fewer)
        );
    }
}

#[test]
fn who_else_holds_pages() {
    let holder = |processes, pages: Option<u64>| PoolHolder {
        name: "qemu".to_owned(),
        user: "libvirt".to_owned(),
        processes,
        memory: Bytes(GIB),
        pages: pages.map(Pages),
        is_bound: false,
        counts: true,
    };
    let clause = |pages, others| holder(2, pages).clause(Pages(others));
    assert_eq!(clause(Some(10), 10), "; qemu (libvirt) holds 10 pages");
    assert_eq!(
        [clause(Some(0), 10), clause(Some(11), 10), clause(None, 10)],
        [""; 3]
    );
    let strangers = |pages, largest| PagesOfStrangers {
        pages: Pages(pages),
        largest,
        ..PagesOfStrangers::default()
    };
    assert_eq!(strangers(0, None).clause(), "");
    let clause = strangers(9, None).clause();
    assert_eq!(
        clause,
        "; 9 more are not counted, because no service account holds them"
    );
    assert_eq!(
        strangers(9, Some(holder(1, Some(9)))).holder(),
        "qemu (libvirt)"
    );
    assert_eq!(
        strangers(9, Some(holder(1, Some(8)))).holder(),
        "qemu (libvirt) with others"
    );
}
