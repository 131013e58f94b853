//! Limits: of cgroups, of NUMA nodes.

use hugepage_assess::model::{Facts, HugePages, NodePools, Pending};
use hugepage_kernel::cgroups::cgroup::{CgroupLimit, CgroupLimits};
use hugepage_kernel::mapping::memory_policy::MemoryPolicy;
use hugepage_kernel::memory::pool::{NodePool, Pool};
use hugepage_kernel::{Bytes, Pages};

use super::super::{GIB, Host, MIB, page_size};
use super::{State, changed};

fn limit(limit: u64, usage: u64, promised: Option<u64>) -> Vec<CgroupLimit> {
    let path = "/sys/fs/cgroup/a/hugetlb.2MB.max".to_owned();
    vec![CgroupLimit {
        path,
        limit: Bytes(limit),
        usage: Bytes(usage),
        promised: promised.map(Bytes),
    }]
}

fn limits(facts: &mut Facts) -> &mut CgroupLimits {
    facts.pool_state.limits.get_or_insert_default()
}

/// Nodes with these pages, so many of them free and so many of them surplus, of 8 GB each; node 0 is allowed.
pub fn nodes(facts: &mut Facts, shares: &[(u64, u64, u64)]) {
    let share = |(node, &(nr, free, surplus)): (u32, &(u64, u64, u64))| NodePool {
        node,
        pool: Pool {
            page_size: page_size(2 * MIB),
            nr: Pages(nr),
            free: Pages(free),
            resv: None,
            surplus: Some(Pages(surplus)),
            overcommit: None,
        },
        memory: Some(Bytes(8 * GIB)),
    };
    let pools = (0..).zip(shares).map(share).collect();
    facts.pool_state.nodes = Some(NodePools {
        pools,
        allowed: Some(vec![0]),
        policy: MemoryPolicy::Any,
    });
}

/// A server of a pod, in 4 kB pages by choice.
fn of_pod() -> Host {
    Host {
        huge_pages: HugePages::Off,
        huge: false,
        pool: [600, 600, 0, 0, 9],
        on_disk: Some(GIB),
        ..Host::default()
    }
}

/// The configuration asks for huge pages since, of which the pod may reserve none, and the group above its own is not seen.
fn asked_on_disk(facts: &mut Facts, huge_pages: HugePages) {
    let mut reservation = limit(0, 0, None);
    reservation[0].path = "hugepages-2Mi".to_owned();
    let limits = CgroupLimits {
        reservation,
        hidden_levels: true,
        ..CgroupLimits::default()
    };
    let Pending::Changed(demand, pool_state) = &mut facts.pending else {
        unreachable!()
    };
    demand.requested.huge_pages = huge_pages;
    pool_state.limits = Some(limits.clone());
    facts.pool_state.limits = Some(limits);
}

pub fn states() -> Vec<State> {
    let base = |pool| Host {
        huge: false,
        pool,
        ..Host::default()
    };
    let larger = || Host {
        pool: [2000, 2000, 534, 0, 9],
        on_disk: Some(2 * GIB),
        ..Host::default()
    };
    vec![
        changed(
            "a cgroup allows less than the segment",
            Host::default(),
            |facts| {
                limits(facts).fault = limit(1067 * MIB, 0, None);
            },
        ),
        changed(
            "a cgroup allows less than the segment, which needs huge pages",
            Host {
                huge_pages: HugePages::On,
                ..Host::default()
            },
            |facts| {
                limits(facts).fault = limit(1067 * MIB, 0, None);
            },
        ),
        changed(
            "a cgroup allows less than the next segment",
            base([534, 534, 0, 0, 9]),
            |facts| {
                limits(facts).fault = limit(1067 * MIB, 0, None);
            },
        ),
        changed(
            "a cgroup allows less than others have reserved too",
            Host::default(),
            |facts| {
                limits(facts).fault = limit(1100 * MIB, 0, Some(1200 * MIB));
            },
        ),
        changed(
            "a cgroup allows less than others will have reserved too",
            base([534, 534, 0, 0, 9]),
            |facts| {
                limits(facts).fault = limit(1100 * MIB, 0, Some(200 * MIB));
            },
        ),
        changed(
            "a limit that was hit, and was raised since",
            Host::default(),
            |facts| {
                limits(facts).refusals =
                    Some(("/sys/fs/cgroup/a/hugetlb.2MB.events".to_owned(), 3));
            },
        ),
        changed("a limit that was never hit", Host::default(), |facts| {
            limits(facts).refusals = Some(("/sys/fs/cgroup/a/hugetlb.2MB.events".to_owned(), 0));
        }),
        changed(
            "a limit on reservations",
            base([600, 600, 0, 0, 9]),
            |facts| limits(facts).reservation = limit(GIB, 10 * MIB, None),
        ),
        changed(
            "a limit on reservations for the next start",
            Host {
                pool: [600, 600, 534, 0, 9],
                ..Host::default()
            },
            |facts| {
                limits(facts).reservation = limit(GIB, 1068 * MIB, None);
            },
        ),
        changed(
            "a limit on reservations, and the pool is empty",
            base([0; 5]),
            |facts| limits(facts).reservation = limit(GIB, 0, None),
        ),
        changed(
            "two limits, and the lower one refuses",
            base([600, 600, 0, 0, 9]),
            |facts| {
                limits(facts).fault = limit(GIB / 2, 0, None);
                limits(facts).reservation = limit(GIB, MIB, None);
                limits(facts).reservation[0].path =
                    "/sys/fs/cgroup/a/hugetlb.2MB.rsvd.max".to_owned();
            },
        ),
        changed("limits that can't be seen", Host::default(), |facts| {
            limits(facts).hidden_levels = true
        }),
        changed(
            "limits that can't be seen, in base pages",
            base([534, 534, 0, 0, 9]),
            |facts| limits(facts).hidden_levels = true,
        ),
        changed("a limit for more on disk", larger(), |facts| {
            let Pending::Changed(_, pool_state) = &mut facts.pending else {
                unreachable!()
            };
            pool_state.limits = Some(CgroupLimits {
                fault: limit(GIB, 0, None),
                ..CgroupLimits::default()
            });
        }),
        changed(
            "off, a pod's limit on reservations, and on is on disk",
            of_pod(),
            |facts| asked_on_disk(facts, HugePages::On),
        ),
        changed(
            "off, a pod's limit on reservations, and try is on disk",
            of_pod(),
            |facts| asked_on_disk(facts, HugePages::Try),
        ),
        changed("a node without pages", base([600, 600, 0, 0, 9]), |facts| {
            nodes(facts, &[(0, 0, 0), (600, 600, 0)])
        }),
        changed(
            "a node without pages, in huge pages",
            Host {
                pool: [600, 66, 0, 0, 9],
                ..Host::default()
            },
            |facts| {
                nodes(facts, &[(0, 0, 0), (600, 66, 0)]);
            },
        ),
        changed(
            "a node with enough pages",
            base([1100, 1100, 0, 0, 9]),
            |facts| nodes(facts, &[(600, 600, 0), (500, 500, 0)]),
        ),
        changed(
            "a node for which the host has memory",
            Host {
                available: Some(1396 * MIB),
                ..base([0; 5])
            },
            |facts| nodes(facts, &[(0, 0, 0), (0, 0, 0)]),
        ),
        changed(
            "a node for which the host has memory once the server stops",
            Host {
                available: Some(1394 * MIB),
                ..base([0; 5])
            },
            |facts| {
                nodes(facts, &[(0, 0, 0), (0, 0, 0)]);
            },
        ),
        changed(
            "a node with too few pages",
            base([600, 600, 0, 0, 9]),
            |facts| nodes(facts, &[(100, 100, 0), (500, 500, 0)]),
        ),
        changed(
            "a node that others may fill",
            base([1100, 1100, 100, 0, 9]),
            |facts| nodes(facts, &[(600, 600, 0), (500, 500, 0)]),
        ),
        changed(
            "a node with surplus pages",
            Host {
                pool: [600, 0, 0, 600, 9],
                ..Host::default()
            },
            |facts| {
                nodes(facts, &[(600, 0, 600), (0, 0, 0)]);
            },
        ),
        changed(
            "a node that can't hold it",
            Host {
                shared_buffers: 9 * GIB,
                memory: 64 * GIB,
                ..base([0; 5])
            },
            |facts| {
                nodes(facts, &[(0, 0, 0), (0, 0, 0)]);
            },
        ),
        changed("a node for more on disk", larger(), |facts| {
            nodes(facts, &[(534, 534, 0), (1466, 1466, 0)]);
            let (Pending::Changed(_, pool_state), nodes) =
                (&mut facts.pending, facts.pool_state.nodes.clone())
            else {
                unreachable!()
            };
            pool_state.nodes = nodes;
        }),
        changed(
            "a node for more on disk that can't hold it",
            Host {
                on_disk: Some(9 * GIB),
                memory: 64 * GIB,
                ..Host::default()
            },
            |facts| {
                nodes(facts, &[(534, 0, 0), (0, 0, 0)]);
                let nodes = facts.pool_state.nodes.clone();
                let Pending::Changed(_, pool_state) = &mut facts.pending else {
                    unreachable!()
                };
                pool_state.nodes = nodes;
            },
        ),
        changed(
            "a node that can't hold it any more",
            Host {
                shared_buffers: 9 * GIB,
                memory: 64 * GIB,
                pool: [4722, 0, 0, 0, 0],
                ..Host::default()
            },
            |facts| {
                nodes(facts, &[(100, 0, 0), (4622, 0, 0)]);
            },
        ),
    ]
}
