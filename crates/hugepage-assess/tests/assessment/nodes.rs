//! NUMA nodes: the kernel counts the free pages of allowed nodes alone when it reserves huge pages.

use hugepage_assess::advice;
use hugepage_assess::assessment::{Outlook, Severity, Status};
use hugepage_assess::model::{HugePages, NodePools};
use hugepage_facts::{Cause, Landing};
use hugepage_kernel::mapping::memory_policy::MemoryPolicy;
use hugepage_kernel::memory::pool::{NodePool, Pool};
use hugepage_kernel::next_boot::PoolAtBoot;
use hugepage_kernel::{Bytes, Pages};

use super::{GIB, Server, known, pool};

/// Nodes with these pages and so many of them free, of 8 GB each.
fn nodes(
    shares: &[(u64, u64)],
    allowed: Option<&[u32]>,
    policy: MemoryPolicy,
) -> Option<NodePools> {
    let share = |(node, &(nr, free)): (u32, &(u64, u64))| NodePool {
        node,
        pool: Pool {
            resv: None,
            overcommit: None,
            ..pool(nr, free, 0)
        },
        memory: Some(Bytes(8 * GIB)),
    };
    Some(NodePools {
        pools: (0..).zip(shares).map(share).collect(),
        allowed: allowed.map(<[u32]>::to_vec),
        policy,
    })
}

/// Landing, pool, shares, allowed nodes, policy: outlook under try, cause, missing. The server needs 512 pages.
#[test]
fn table_of_nodes() {
    use Landing::{Base, Hugetlb};
    use MemoryPolicy::{Any, Bind, Unknown};
    let (both, first) = (Some(&[0, 1][..]), Some(&[0][..]));
    let bound = || Bind(vec![0]);
    let base = |at_node| {
        (
            Base,
            pool(600, 600, 0),
            [(600 - at_node, 600 - at_node), (at_node, at_node)],
        )
    };
    for (what, (landing, pool, shares), allowed, policy, outlook, cause, missing) in [
        (
            "all nodes",
            base(600),
            both,
            Any,
            Outlook::Hugetlb,
            Some(Cause::Unknown),
            Some(0),
        ),
        (
            "cpuset without the pages",
            base(600),
            first,
            Any,
            Outlook::Base,
            Some(Cause::NodeLimit),
            Some(512),
        ),
        (
            "policy without the pages",
            base(600),
            both,
            bound(),
            Outlook::Base,
            Some(Cause::NodeLimit),
            Some(512),
        ),
        (
            "one page short",
            base(89),
            first,
            Any,
            Outlook::Base,
            Some(Cause::NodeLimit),
            Some(1),
        ),
        (
            "just enough",
            base(88),
            first,
            Any,
            Outlook::Hugetlb,
            Some(Cause::Unknown),
            Some(0),
        ),
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
        (
            "and nodes are equal",
            base(300),
            both,
            Unknown,
            Outlook::Hugetlb,
            Some(Cause::Unknown),
            Some(0),
        ),
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
        (
            "cpuset unknown, and nodes differ",
            base(0),
            None,
            Any,
            Outlook::Unknown,
            Some(Cause::Unknown),
            None,
        ),
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
        assert_eq!(
            (status.forecast.outlook, status.cause),
            (outlook, cause),
            "{what}"
        );
        assert_eq!(status.missing, missing.map(Pages), "{what}");
        let on = Server {
            huge_pages: HugePages::On,
            ..server
        }
        .status();
        assert_eq!(
            on.forecast.outlook,
            if outlook == Outlook::Base {
                Outlook::Fails
            } else {
                outlook
            },
            "{what}"
        );
    }
}

/// More pages of the host would be spread over nodes that the server may not use, so no command is certain to help.
#[test]
fn the_hint_names_the_nodes_and_no_command() {
    let server = |landing, shares: &[(u64, u64)], pool| Server {
        landing: Some(landing),
        pool: known(pool),
        nodes: nodes(shares, Some(&[0]), MemoryPolicy::Any),
        ..Server::default()
    };
    let hint = "Before its next start give the NUMA nodes that the server may use more huge pages (/sys/devices/system/node), or let it \
                use more nodes (cpuset.mems, numactl).";
    let status = server(Landing::Base, &[(0, 0), (600, 600)], pool(600, 600, 0)).status();
    assert_eq!(
        advice::message(&status),
        "Shared memory (1 GB) is in 4 kB pages although huge pages were asked for: the NUMA nodes that it may use have only 0 \
         of the 512 pages of 2 MB needed (node 0: 0 of 0 free; not allowed: node 1: 600 of 600 free)."
    );
    assert_eq!(advice::hint(&status).as_deref(), Some(hint));
    // In huge pages, whose node is forbidden since.
    let status = server(
        Landing::Hugetlb,
        &[(500, 500), (524, 12)],
        pool(1024, 512, 0),
    )
    .status();
    assert_eq!(
        (status.verdict().0, advice::hint(&status).as_deref()),
        (Severity::Warning, Some(hint))
    );
    // A pool too small for all.
    let status = server(Landing::Base, &[(50, 50), (50, 50)], pool(100, 100, 0)).status();
    assert_eq!(
        (status.cause, advice::hint(&status).as_deref()),
        (Some(Cause::PoolTooSmall), Some(hint))
    );
    // The pages of the other node, which the server may not use, are no waste: less than 1 GB, so a notice before.
    let small = Server {
        size: 140 << 20,
        ..server(Landing::Base, &[(0, 0), (80, 80)], pool(80, 80, 0))
    };
    let status = small.status();
    assert_eq!(
        (status.verdict().0, advice::hint(&status).as_deref()),
        (Severity::Notice, Some(hint))
    );
    let both = server(
        Landing::Hugetlb,
        &[(512, 0), (600, 600)],
        pool(1112, 600, 0),
    )
    .status();
    assert_eq!(both.verdict().0, Severity::Ok);
    let first = nodes(&[(7, 0), (9, 0)], Some(&[0]), MemoryPolicy::Any).unwrap();
    assert_eq!(first.persistent(), Some(Pages(7)));
    assert_eq!(
        nodes(&[(7, 0), (9, 0)], None, MemoryPolicy::Any)
            .unwrap()
            .persistent(),
        None
    );
}

/// The kernel spreads what a file sets over all nodes, though the server may use the first alone.
#[test]
fn a_boot_spreads_the_pages() {
    let status = |huge_pages, allowed: &[u32], boot| {
        let mut facts = Server {
            huge_pages,
            pool: known(pool(612, 100, 0)),
            nodes: nodes(&[(512, 0), (100, 100)], Some(allowed), MemoryPolicy::Any),
            ..Server::default()
        }
        .facts();
        facts.next_boot = Some(boot);
        Status::assess(facts)
    };
    let set = |pages| PoolAtBoot::Set(Pages(pages), "/etc/sysctl.conf".to_owned());
    for (what, allowed, boot, outlook, finding) in [
        (
            "half of them",
            &[0][..],
            set(612),
            Outlook::Unknown,
            "boot_unknown",
        ),
        (
            "half of them suffice",
            &[0],
            set(1024),
            Outlook::Hugetlb,
            "",
        ),
        (
            "too few of all",
            &[0],
            set(300),
            Outlook::Base,
            "boot_loses",
        ),
        ("all nodes", &[0, 1], set(612), Outlook::Hugetlb, ""),
        (
            "nothing sets them",
            &[0],
            PoolAtBoot::Unset,
            Outlook::Base,
            "boot_loses",
        ),
    ] {
        let status = status(HugePages::Try, allowed, boot);
        assert_eq!(status.boot_outlook(), Some(outlook), "{what}");
        let found = status.findings.first().map_or("", |found| found.1.name());
        assert_eq!(found, finding, "{what}");
        let hint = advice::hint(&status);
        assert!(hint.is_none_or(|hint| !hint.contains("sysctl")), "{what}");
    }
    let message = advice::message(&status(HugePages::On, &[0], set(612)));
    assert_eq!(
        message,
        "Shared memory (1 GB) is in 512 huge pages of 2 MB, but what the next boot gives is unknown: /etc/sysctl.conf sets 612 \
         pages of 2 MB, spread over all NUMA nodes."
    );
}
