//! NUMA nodes: the kernel counts the free pages of allowed nodes alone when it reserves huge pages.

use hugepage_assess::advice;
use hugepage_assess::assessment::{Outlook, Severity};
use hugepage_assess::model::{Cause, HugePages, Landing, NodePools};
use hugepage_kernel::mapping::memory_policy::MemoryPolicy;
use hugepage_kernel::memory::pool::{NodePool, Pool};
use hugepage_kernel::{Bytes, Pages};

use super::{GIB, Server, known, pool, reservation};

/// Nodes with these pages and so many of them free, of 8 GB each.
fn nodes(shares: &[(u64, u64)], allowed: Option<&[u32]>, policy: MemoryPolicy) -> Option<NodePools> {
    let share = |(node, &(nr, free)): (u32, &(u64, u64))| NodePool {
        node,
        pool: Pool { resv: None, overcommit: None, ..pool(nr, free, 0) },
        memory: Some(Bytes(8 * GIB)),
    };
    Some(NodePools { pools: (0..).zip(shares).map(share).collect(), allowed: allowed.map(<[u32]>::to_vec), policy })
}

/// Landing, pool, shares, allowed nodes, policy: outlook under try, cause, missing. The server needs 512 pages.
#[test]
fn table_of_nodes() {
    use Landing::{Base, Hugetlb};
    use MemoryPolicy::{Any, Bind, Unknown};
    let (both, first) = (Some(&[0, 1][..]), Some(&[0][..]));
    let bound = || Bind(vec![0]);
    let base = |at_node| (Base, pool(600, 600, 0), [(600 - at_node, 600 - at_node), (at_node, at_node)]);
    for (what, (landing, pool, shares), allowed, policy, outlook, cause, missing) in [
        ("all nodes", base(600), both, Any, Outlook::Hugetlb, Some(Cause::Unknown), Some(0)),
        ("cpuset without the pages", base(600), first, Any, Outlook::Base, Some(Cause::NodeLimit), Some(512)),
        ("policy without the pages", base(600), both, bound(), Outlook::Base, Some(Cause::NodeLimit), Some(512)),
        ("one page short", base(89), first, Any, Outlook::Base, Some(Cause::NodeLimit), Some(1)),
        ("just enough", base(88), first, Any, Outlook::Hugetlb, Some(Cause::Unknown), Some(0)),
        (
            "a policy of forbidden nodes is no policy",
            base(88),
            first,
            Bind(vec![1]),
            Outlook::Hugetlb,
            Some(Cause::Unknown),
            Some(0),
        ),
        (
            "a policy that can't be seen, and nodes differ",
            base(600),
            both,
            Unknown,
            Outlook::Unknown,
            Some(Cause::Unknown),
            None,
        ),
        ("and nodes are equal", base(300), both, Unknown, Outlook::Hugetlb, Some(Cause::Unknown), Some(0)),
        (
            "and nodes differ by the page that an odd number leaves",
            (Base, pool(601, 601, 0), [(301, 301), (300, 300)]),
            both,
            Unknown,
            Outlook::Hugetlb,
            Some(Cause::Unknown),
            Some(0),
        ),
        (
            "and nodes differ by two pages",
            (Base, pool(602, 602, 0), [(302, 302), (300, 300)]),
            both,
            Unknown,
            Outlook::Unknown,
            Some(Cause::Unknown),
            None,
        ),
        (
            "and nodes differ, but each suffices",
            (Base, pool(1212, 1212, 0), [(512, 512), (700, 700)]),
            both,
            Unknown,
            Outlook::Hugetlb,
            Some(Cause::Unknown),
            Some(0),
        ),
        ("cpuset unknown, and nodes differ", base(0), None, Any, Outlook::Unknown, Some(Cause::Unknown), None),
        (
            "others have promises that may be on the node",
            (Base, pool(1200, 1200, 100), [(600, 600), (600, 600)]),
            first,
            Any,
            Outlook::Unknown,
            Some(Cause::Unknown),
            None,
        ),
        (
            "its own pages come back to it",
            (Hugetlb, pool(1200, 688, 0), [(600, 88), (600, 600)]),
            first,
            Any,
            Outlook::Hugetlb,
            None,
            Some(0),
        ),
        (
            "its node was reduced since",
            (Hugetlb, pool(812, 300, 0), [(512, 0), (300, 300)]),
            first,
            Any,
            Outlook::Hugetlb,
            None,
            Some(0),
        ),
        (
            "its cpuset was changed since",
            (Hugetlb, pool(1024, 512, 0), [(500, 500), (524, 12)]),
            first,
            Any,
            Outlook::Base,
            None,
            Some(0),
        ),
    ] {
        let server = Server {
            landing: Some(landing),
            pool: known(pool),
            nodes: nodes(&shares, allowed, policy),
            ..Server::default()
        };
        let status = server.clone().status();
        assert_eq!((status.outlook, status.cause), (outlook, cause), "{what}");
        assert_eq!(status.missing, missing.map(Pages), "{what}");
        let on = Server { huge_pages: HugePages::On, ..server }.status();
        assert_eq!(on.outlook, if outlook == Outlook::Base { Outlook::Fails } else { outlook }, "{what}");
    }
}

/// Nodes 0 and 1 of three are allowed: nr, free and surplus of each, and the memory of node 1; the server has `own` pages.
/// What comes out is the node, its pages, how many more that is, and whether it can hold them. 500 pages are needed.
#[test]
fn table_of_targets() {
    type Share = (u64, u64, u64);
    let target = |shares: [Share; 2], gigabytes: u64, own: u64| {
        let (all, third) = (shares.map(|(nr, free, surplus)| [nr, free, surplus]), (900, 900));
        let [nr, free, surplus] = [0, 1, 2].map(|at| all.iter().map(|share| share[at]).sum::<u64>());
        let of_host = Pool { surplus: Some(Pages(surplus)), ..pool(nr + third.0, free + third.1, 0) };
        let counts = [(shares[0].0, shares[0].1), (shares[1].0, shares[1].1), third];
        let mut nodes = nodes(&counts, Some(&[0, 1]), MemoryPolicy::Any).unwrap();
        for (node, (_, _, surplus)) in nodes.pools.iter_mut().zip(shares) {
            node.pool.surplus = Some(Pages(surplus));
        }
        nodes.pools[1].memory = Some(Bytes(gigabytes * GIB));
        let target = nodes.target(&of_host, Pages(500), Pages(own), 20).unwrap();
        (target.node, target.pages.0, target.more.0, target.fits)
    };
    for (what, shares, gigabytes, own, expected) in [
        ("the first of equals", [(0, 0, 0), (0, 0, 0)], 8, 0, (0, 500, 500, true)),
        ("that with most memory outside of its pool", [(200, 200, 0), (100, 100, 0)], 8, 0, (1, 300, 200, true)),
        ("that with most memory", [(0, 0, 0), (0, 0, 0)], 9, 0, (1, 500, 500, true)),
        ("all are there", [(500, 500, 0), (0, 0, 0)], 1, 0, (0, 500, 0, true)),
        ("its own pages are surplus, and stay", [(600, 0, 600), (0, 0, 0)], 1, 600, (0, 600, 600, true)),
        ("no more are needed, so surplus pages may go", [(600, 0, 100), (0, 0, 0)], 1, 600, (0, 500, 0, true)),
        ("others may use what is free", [(600, 300, 0), (0, 0, 0)], 1, 0, (0, 800, 200, true)),
        ("80% of the node hold it", [(2776, 0, 0), (0, 0, 0)], 1, 0, (0, 3276, 500, true)),
        ("80% of the node do not", [(2777, 0, 0), (0, 0, 0)], 1, 0, (0, 3277, 500, false)),
    ] {
        assert_eq!(target(shares, gigabytes, own), expected, "{what}");
    }
    let all = nodes(&[(0, 0), (0, 0)], None, MemoryPolicy::Any).unwrap();
    assert_eq!((all.target(&pool(0, 0, 0), Pages(1), Pages(0), 20), all.persistent()), (None, None));
    let first = nodes(&[(7, 0), (9, 0)], Some(&[0]), MemoryPolicy::Any).unwrap();
    assert_eq!(first.persistent(), Some(Pages(7)));
}

#[test]
fn the_hint_names_the_file_of_the_node() {
    let server = |landing, shares: &[(u64, u64)], pool| Server {
        landing: Some(landing),
        pool: known(pool),
        nodes: nodes(shares, Some(&[0]), MemoryPolicy::Any),
        ..Server::default()
    };
    let status = server(Landing::Base, &[(0, 0), (600, 600)], pool(600, 600, 0)).status();
    assert_eq!(
        advice::message(&status),
        "Shared memory (1 GB) is in 4 kB pages although huge pages were asked for: the NUMA nodes that it may use have only 0 \
         of the 512 pages of 2 MB needed (node 0: 0 of 0 free; not allowed: node 1: 600 of 600 free)."
    );
    assert_eq!(
        advice::hint(&status).as_deref(),
        Some(seen!(
            "Run \"echo 512 > /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages",
            " and restart the \
             server."
        ))
    );
    // In huge pages, whose node is forbidden since.
    let status = server(Landing::Hugetlb, &[(500, 500), (524, 12)], pool(1024, 512, 0)).status();
    assert_eq!(status.verdict().0, Severity::Warning);
    assert_eq!(
        advice::hint(&status).as_deref(),
        Some(seen!("Run \"echo 512 > /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "."))
    );
    // A pool too small for all: more pages of the host would be spread over both nodes.
    let status = server(Landing::Base, &[(50, 50), (50, 50)], pool(100, 100, 0)).status();
    assert_eq!(status.cause, Some(Cause::PoolTooSmall));
    assert!(advice::hint(&status).unwrap().contains("echo 512 > /sys/devices/system/node/node0/"));
    // The pages of the other node, which the server may not use, are no waste: less than 1 GB, so a notice before.
    let small = Server { size: 140 << 20, ..server(Landing::Base, &[(0, 0), (80, 80)], pool(80, 80, 0)) };
    let status = small.status();
    assert_eq!(status.verdict().0, Severity::Notice);
    assert!(advice::hint(&status).unwrap().contains("echo 70 > /sys/devices/system/node/node0/"));
    let both = server(Landing::Hugetlb, &[(512, 0), (600, 600)], pool(1112, 600, 0)).status();
    assert_eq!(both.verdict().0, Severity::Ok);
    // The node can't hold it.
    let large = Server {
        size: 7 * GIB,
        memory: 64 * GIB,
        ..server(Landing::Base, &[(0, 0), (9000, 9000)], pool(9000, 9000, 0))
    };
    let hint = advice::hint(&large.status()).unwrap();
    assert!(hint.starts_with("Let the server use more NUMA nodes"), "{hint}");
}

/// A limit of the hugetlb cgroup and one of the memory cgroup come before the node, and the node before the restart.
#[test]
fn the_node_is_one_obstacle_of_several() {
    let server = || Server {
        nodes: nodes(&[(0, 0), (600, 600)], Some(&[0]), MemoryPolicy::Any),
        pool: known(pool(600, 600, 0)),
        limits: reservation(&[(0, 0)]),
        ..Server::in_base_pages()
    };
    assert_eq!(
        advice::hint(&server().status()).as_deref(),
        Some(seen!(
            "Set /sys/fs/cgroup/limit_0 to at least 1073741824 bytes, run \"echo 512 > \
             /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages",
            " and restart the server."
        ))
    );
}

/// What a hint sets leads to huge pages.
#[test]
fn the_hint_is_enough() {
    for shares in [[(0, 0), (600, 600)], [(100, 0), (600, 600)], [(511, 511), (10, 10)], [(300, 100), (900, 500)]] {
        for promised in [0, 40] {
            let whole = |shares: &[(u64, u64)]| {
                let sum = |take: fn(&(u64, u64)) -> u64| shares.iter().map(take).sum();
                pool(sum(|share| share.0), sum(|share| share.1), promised)
            };
            let status = |shares: &[(u64, u64)]| {
                Server {
                    pool: known(whole(shares)),
                    nodes: nodes(shares, Some(&[0]), MemoryPolicy::Any),
                    ..Server::in_base_pages()
                }
                .status()
            };
            let before = status(&shares);
            let facts = &before.facts;
            let target = facts.pool_state.nodes.as_ref().unwrap().target(
                facts.pool_state.pool.known().unwrap(),
                Pages(512),
                Pages(0),
                20,
            );
            let target = target.unwrap();
            assert!(target.fits && target.node == 0);
            let after = [(target.pages.0, shares[0].1 + target.more.0), shares[1]];
            assert_eq!(
                (status(&after).outlook, status(&after).missing),
                (Outlook::Hugetlb, Some(Pages(0))),
                "{shares:?}"
            );
        }
    }
}
