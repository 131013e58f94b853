//! Where the pages of a segment are by NUMA node, and what a start would find there.

use std::collections::BTreeMap;
use std::path::Path;

use hugepage_assess::advice::placement::{Start, notice};
use hugepage_assess::assessment::placement::{Imbalance, Placement};
use hugepage_assess::model::NodePools;
use hugepage_kernel::mapping::memory_policy::MemoryPolicy;
use hugepage_kernel::memory::pool::{NodePool, Pool};
use hugepage_kernel::{Bytes, Pages};

use super::{GIB, pool};

/// A server with `own` pages, of which `segment` were found on the nodes; of each node all pages and the free ones, and
/// `resv` reservations on the host.
fn placement(own: u64, segment: &[u64], shares: &[(u64, u64)], resv: u64) -> Placement {
    let share = |(node, &(nr, free)): (u32, &(u64, u64))| NodePool {
        node,
        pool: Pool { resv: None, overcommit: None, ..pool(nr, free, 0) },
        memory: Some(Bytes(8 * GIB)),
    };
    let sum = |of: fn(&(u64, u64)) -> u64| shares.iter().map(of).sum();
    Placement {
        pool: pool(sum(|share| share.0), sum(|share| share.1), resv),
        nodes: NodePools {
            pools: (0..).zip(shares).map(share).collect(),
            allowed: Some((0..).zip(shares).map(|(node, _)| node).collect()),
            policy: MemoryPolicy::Any,
        },
        own: Pages(own),
        needed: Some(Pages(512)),
        segment: Some((0..).zip(segment).map(|(node, &pages)| (node, Pages(pages))).collect::<BTreeMap<_, _>>()),
        reserve_percent: 20,
    }
}

fn restart(placement: &Placement) -> Vec<Option<u64>> {
    placement.rows().iter().map(|row| row.restart.map(|pages| pages.0)).collect()
}

#[test]
fn what_a_restart_finds_on_each_node() {
    for (what, placement, expected) in [
        ("alone, all touched", placement(512, &[256, 256], &[(300, 44), (300, 44)], 0), [Some(300), Some(300)]),
        ("alone, half of it promised", placement(512, &[256], &[(300, 44), (300, 300)], 256), [Some(300), Some(300)]),
        ("alone, its pages were not found", placement(512, &[], &[(300, 44), (300, 44)], 0), [Some(300), Some(300)]),
        ("others have 50 on the first", placement(512, &[250, 262], &[(300, 0), (300, 38)], 0), [Some(250), Some(300)]),
        ("others were promised 10", placement(512, &[256, 256], &[(300, 44), (300, 44)], 10), [None, None]),
        ("theirs or its own were not found", placement(512, &[200, 212], &[(300, 0), (300, 38)], 0), [None, None]),
    ] {
        assert_eq!(restart(&placement), expected, "{what}");
    }
    let one = placement(512, &[100], &[(600, 450)], 412);
    // 150 touched and 412 promised, 512 of them its own.
    assert_eq!(restart(&one), [Some(550)]);
    assert_eq!(one.rows()[0].pool.resv, Some(Pages(412)), "the reservations of the host are those of its only node");
    assert_eq!(placement(512, &[256], &[(300, 44), (300, 300)], 256).rows()[0].pool.resv, None);
    let unknown = Placement { segment: None, ..placement(512, &[], &[(300, 44), (300, 44)], 0) };
    assert_eq!(restart(&unknown), [None, None]);
    assert!(unknown.rows().iter().all(|row| row.segment.is_none() && row.imbalance.is_none()));
}

#[test]
fn nodes_that_are_not_allowed_or_may_not_be() {
    let all = || placement(0, &[], &[(300, 300), (300, 300)], 0);
    let of = |allowed: Option<&[u32]>, policy| {
        let nodes = NodePools { allowed: allowed.map(<[u32]>::to_vec), policy, ..all().nodes };
        Placement { nodes, ..all() }.rows().iter().map(|row| (row.allowed, row.restart)).collect::<Vec<_>>()
    };
    let some = |pages| Some(Pages(pages));
    assert_eq!(of(Some(&[1]), MemoryPolicy::Any), [(Some(false), some(0)), (Some(true), some(300))]);
    assert_eq!(of(Some(&[0, 1]), MemoryPolicy::Bind(vec![0])), [(Some(true), some(300)), (Some(false), some(0))]);
    assert_eq!(of(Some(&[1]), MemoryPolicy::Unknown), [(Some(false), some(0)), (None, some(300))]);
    assert_eq!(of(None, MemoryPolicy::Any), [(None, some(300)), (None, some(300))]);
}

#[test]
fn uneven_nodes_and_their_commands() {
    let service = Start { service: Some("postgresql.service"), programs: Path::new("/bin"), data: Path::new("/d") };
    let by_hand = Start { service: None, programs: Path::new("/usr/lib/pg bin"), data: Path::new("/srv/it's") };
    let said = |placement: &Placement, node: usize, start| notice(placement, &placement.rows()[node], start);
    let uneven = placement(512, &[400, 100], &[(520, 120), (520, 420)], 12);
    let (text, command) = said(&uneven, 0, by_hand);
    assert_eq!(
        text.as_deref(),
        Some(
            "Node 0 holds 400 of the 500 pages of 2 MB that shared memory has touched; an even share is 250. Sessions on \
             other nodes read them more slowly."
        )
    );
    assert_eq!(
        command.as_deref(),
        Some("numactl --interleave=0,1 '/usr/lib/pg bin/pg_ctl' restart -D '/srv/it'\\''s'")
    );
    let command = said(&uneven, 0, service).1.unwrap();
    assert!(command.contains("NUMAPolicy=interleave\\nNUMAMask=0,1\\n"), "{command}");
    assert!(command.ends_with("systemctl restart postgresql.service"), "{command}");
    assert_eq!(said(&uneven, 1, by_hand), (None, None));

    let pools = placement(512, &[10, 500], &[(20, 10), (600, 100)], 2);
    assert_eq!(
        pools.rows()[0].imbalance,
        Some(Imbalance::Pool { found: Pages(20), even: Pages(256), target: Some(Pages(256)) })
    );
    let (text, command) = said(&pools, 0, by_hand);
    assert_eq!(
        text.as_deref(),
        Some("A start of the server would find 20 pages of 2 MB on node 0; an even share of what it needs is 256.")
    );
    assert_eq!(
        command.as_deref(),
        Some("echo 256 > /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages")
    );
    // A node that has no memory for it gets no command.
    let mut small = pools.clone();
    small.nodes.pools[0].memory = Some(Bytes(GIB / 2));
    assert!(matches!(said(&small, 0, by_hand), (Some(_), None)));

    // As many pages as are needed, on three nodes.
    let three = placement(512, &[], &[(20, 20), (200, 200), (292, 292)], 0);
    let found = three.rows().into_iter().map(|row| row.imbalance);
    let of_pool =
        |found, target| Some(Imbalance::Pool { found: Pages(found), even: Pages(171), target: Some(Pages(target)) });
    assert_eq!(found.collect::<Vec<_>>(), [of_pool(20, 171), None, None]);
    for (what, even) in [
        ("a half more than even", placement(512, &[300, 100], &[(520, 220), (520, 420)], 12)),
        ("a little uneven", placement(512, &[300, 200], &[(520, 220), (520, 320)], 12)),
        ("little is touched", placement(512, &[60, 0], &[(520, 460), (520, 520)], 452)),
        ("one node", placement(512, &[512], &[(512, 0)], 0)),
        ("the pool is too small for any spreading", placement(0, &[], &[(0, 0), (300, 300)], 0)),
    ] {
        assert!(even.rows().iter().all(|row| row.imbalance.is_none()), "{what}");
    }
}
