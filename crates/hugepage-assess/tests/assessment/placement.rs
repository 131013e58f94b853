//! Where the pages of a segment are by NUMA node, and the pool of each node.

use std::collections::BTreeMap;

use hugepage_assess::assessment::Placement;
use hugepage_assess::model::NodePools;
use hugepage_kernel::mapping::memory_policy::MemoryPolicy;
use hugepage_kernel::memory::pool::{NodePool, Pool};
use hugepage_kernel::{Bytes, Pages};

use super::{GIB, pool};

/// A server of which `segment` were found on the nodes; of each node all pages and the free ones, and `resv` reservations
/// on the host.
fn placement(segment: &[u64], shares: &[(u64, u64)], resv: u64) -> Placement {
    let share = |(node, &(nr, free)): (u32, &(u64, u64))| NodePool {
        node,
        pool: Pool {
            resv: None,
            overcommit: None,
            ..pool(nr, free, 0)
        },
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
        segment: Some(
            (0..)
                .zip(segment)
                .map(|(node, &pages)| (node, Pages(pages)))
                .collect::<BTreeMap<_, _>>(),
        ),
    }
}

#[test]
fn the_segment_and_the_pool_of_each_node() {
    let rows = |placement: &Placement| {
        let rows = placement.rows().into_iter();
        rows.map(|row| (row.node, row.segment, row.pool.free, row.pool.resv))
            .collect::<Vec<_>>()
    };
    let some = |pages| Some(Pages(pages));
    let two = placement(&[256], &[(300, 44), (300, 300)], 256);
    assert_eq!(
        rows(&two),
        [
            (0, some(256), Pages(44), None),
            (1, some(0), Pages(300), None)
        ]
    );
    // The reservations of the host are those of its only node.
    assert_eq!(
        rows(&placement(&[100], &[(600, 450)], 412)),
        [(0, some(100), Pages(450), some(412))]
    );
    let unknown = Placement {
        segment: None,
        ..two
    };
    assert_eq!(
        rows(&unknown),
        [(0, None, Pages(44), None), (1, None, Pages(300), None)]
    );
}

#[test]
fn nodes_that_are_not_allowed_or_may_not_be() {
    let all = || placement(&[], &[(300, 300), (300, 300)], 0);
    let of = |allowed: Option<&[u32]>, policy| {
        let nodes = NodePools {
            allowed: allowed.map(<[u32]>::to_vec),
            policy,
            ..all().nodes
        };
        Placement { nodes, ..all() }
            .rows()
            .iter()
            .map(|row| row.allowed)
            .collect::<Vec<_>>()
    };
    assert_eq!(of(Some(&[1]), MemoryPolicy::Any), [Some(false), Some(true)]);
    assert_eq!(
        of(Some(&[0, 1]), MemoryPolicy::Bind(vec![0])),
        [Some(true), Some(false)]
    );
    assert_eq!(of(Some(&[1]), MemoryPolicy::Unknown), [Some(false), None]);
    assert_eq!(of(None, MemoryPolicy::Any), [None, None]);
}
