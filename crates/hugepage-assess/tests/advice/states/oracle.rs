//! An SGA: its terms, its limits, and what AUTO and MEMORY_TARGET change.

use hugepage_assess::model::{Facts, HugePages, LockLimit, Pending, Product, UseLargePages};
use hugepage_facts::{Cause, Landing};
use hugepage_kernel::cgroups::cgroup::{CgroupLimit, CgroupLimits};
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::next_boot::PoolAtBoot;
use hugepage_kernel::{Bytes, PageSize, Pages};

use super::super::{GIB, Host, MIB};
use super::{State, changed};

fn oracle(facts: &mut Facts, use_large_pages: Option<UseLargePages>) {
    facts.requested.product = Product::Oracle {
        memory_target: false,
        may_mix: true,
        use_large_pages,
        is_asm: false,
    };
    facts.requested.huge_pages = use_large_pages.map_or(HugePages::Try, UseLargePages::huge_pages);
}

fn lock(facts: &mut Facts, limit: LockLimit) {
    oracle(facts, None);
    facts.pool_state.lock_limit = Some(limit);
}

fn may_refuse_pending(facts: &mut Facts, limit: LockLimit) {
    lock(facts, limit);
    let requested = facts.requested;
    let Pending::Changed(demand, pool_state) = &mut facts.pending else {
        unreachable!()
    };
    (demand.requested, pool_state.lock_limit) = (requested, Some(limit));
}

pub fn states() -> Vec<State> {
    let base = |pool| Host {
        huge: false,
        pool,
        ..Host::default()
    };
    let full = || base([600, 600, 0, 0, 9]);
    vec![
        changed("an SGA that is well", Host::default(), |facts| {
            oracle(facts, Some(UseLargePages::True))
        }),
        changed("an SGA in base pages", base([100, 100, 0, 0, 9]), |facts| {
            oracle(facts, None)
        }),
        changed("an SGA in base pages by choice", base([0; 5]), |facts| {
            oracle(facts, Some(UseLargePages::False))
        }),
        changed(
            "an SGA of ONLY huge pages, and the pool was lowered",
            Host {
                pool: [534, 100, 100, 534, 9],
                ..Host::default()
            },
            |facts| {
                oracle(facts, Some(UseLargePages::Only));
            },
        ),
        changed(
            "an SGA that asks the kernel",
            Host {
                pool: [534, 100, 100, 534, 9],
                ..Host::default()
            },
            |facts| {
                oracle(facts, Some(UseLargePages::Auto));
            },
        ),
        changed(
            "an SGA that asks the kernel for more than the host has",
            Host {
                shared_buffers: 14 * GIB,
                pool: [7300, 0, 0, 7300, 9],
                ..Host::default()
            },
            |facts| {
                oracle(facts, Some(UseLargePages::AutoOnly));
            },
        ),
        changed(
            "a part of an SGA in huge pages",
            base([300, 0, 0, 0, 9]),
            |facts| {
                oracle(facts, Some(UseLargePages::True));
                let segment = facts.segment.as_mut().unwrap();
                (segment.landing, segment.page_size) = (Landing::Mixed, PageSize::from_kib(2048));
                segment.in_huge_pages = Bytes(600 * MIB);
            },
        ),
        changed(
            "a part of an SGA would be lost",
            Host {
                pool: [534, 434, 434, 100, 9],
                ..Host::default()
            },
            |facts| {
                oracle(facts, Some(UseLargePages::True));
            },
        ),
        changed(
            "others hold all that the host can have, and an SGA has none",
            base([6553, 0, 0, 0, 9]),
            |facts| oracle(facts, None),
        ),
        changed(
            "an SGA, and a pool of 1 GB pages",
            Host {
                gigantic: [3, 3, 0, 0, 0],
                shared_buffers: 2 * GIB,
                ..base([0; 5])
            },
            |facts| oracle(facts, None),
        ),
        changed(
            "more on disk for an SGA",
            Host {
                on_disk: Some(2 * GIB),
                ..Host::default()
            },
            |facts| {
                oracle(facts, Some(UseLargePages::True));
                let requested = facts.requested;
                let Pending::Changed(demand, _) = &mut facts.pending else {
                    unreachable!()
                };
                demand.requested = requested;
            },
        ),
        changed(
            "more on disk for an SGA, and the memory of the host is unknown",
            Host {
                on_disk: Some(2 * GIB),
                ..Host::default()
            },
            |facts| {
                oracle(facts, Some(UseLargePages::True));
                (facts.meminfo, facts.pool_state.limits) = (Meminfo::default(), None);
            },
        ),
        changed(
            "an SGA too large for the host",
            Host {
                shared_buffers: 14 * GIB,
                ..base([0; 5])
            },
            |facts| oracle(facts, None),
        ),
        changed("MEMORY_TARGET", base([0; 5]), |facts| {
            oracle(facts, None);
            facts.requested.product = facts.requested.product.with_memory_target(true);
        }),
        changed(
            "MEMORY_TARGET, and pages that nobody can use",
            base([534, 534, 0, 0, 9]),
            |facts| {
                oracle(facts, None);
                facts.requested.product = facts.requested.product.with_memory_target(true);
            },
        ),
        changed("ASM", base([0; 5]), |facts| {
            facts.requested.product = Product::Oracle {
                memory_target: true,
                may_mix: true,
                use_large_pages: None,
                is_asm: true,
            };
        }),
        changed("memlock", full(), |facts| {
            lock(
                facts,
                LockLimit::Memlock {
                    limit: Bytes(GIB),
                    others: Bytes(0),
                },
            )
        }),
        changed("memlock beside other instances", full(), |facts| {
            lock(
                facts,
                LockLimit::Memlock {
                    limit: Bytes(2 * GIB),
                    others: Bytes(GIB),
                },
            )
        }),
        changed(
            "memlock for the next start",
            Host {
                pool: [600, 600, 534, 0, 9],
                ..Host::default()
            },
            |facts| {
                lock(
                    facts,
                    LockLimit::Memlock {
                        limit: Bytes(GIB),
                        others: Bytes(0),
                    },
                );
            },
        ),
        changed("the group of System V huge pages", full(), |facts| {
            lock(facts, LockLimit::ShmGroup { gid: 54321 })
        }),
        changed(
            "the group or memlock, and memlock is enough",
            full(),
            |facts| {
                lock(
                    facts,
                    LockLimit::Either {
                        gid: 54321,
                        limit: None,
                    },
                )
            },
        ),
        changed(
            "the group or memlock, and memlock is too low",
            full(),
            |facts| {
                lock(
                    facts,
                    LockLimit::Either {
                        gid: 54321,
                        limit: Some(Bytes(GIB)),
                    },
                );
            },
        ),
        changed(
            "the group or memlock, for the next start",
            Host {
                pool: [600, 600, 534, 0, 9],
                ..Host::default()
            },
            |facts| {
                lock(
                    facts,
                    LockLimit::Either {
                        gid: 54321,
                        limit: None,
                    },
                );
            },
        ),
        changed("kernel.shmall", base([0; 5]), |facts| {
            lock(
                facts,
                LockLimit::Shmall {
                    limit: Bytes(GIB),
                    others: Bytes(100 * MIB),
                    needed_pages: 300_000,
                },
            );
        }),
        changed(
            "kernel.shmall, which the SGA alone exceeds",
            base([0; 5]),
            |facts| {
                lock(
                    facts,
                    LockLimit::Shmall {
                        limit: Bytes(GIB),
                        others: Bytes(0),
                        needed_pages: 300_000,
                    },
                );
            },
        ),
        changed("memlock refused an SGA at its start", full(), |facts| {
            lock(
                facts,
                LockLimit::Memlock {
                    limit: Bytes(2 * GIB),
                    others: Bytes(0),
                },
            );
            facts.past.cause_at_start = Some(Cause::MemlockLimit);
        }),
        changed(
            "the group or memlock, for more on disk",
            Host {
                on_disk: Some(GIB + GIB / 8),
                pool: [700, 700, 534, 0, 9],
                ..Host::default()
            },
            |facts| {
                may_refuse_pending(
                    facts,
                    LockLimit::Either {
                        gid: 54321,
                        limit: None,
                    },
                );
            },
        ),
        changed(
            "nobody knows what may refuse more on disk",
            Host {
                on_disk: Some(GIB + GIB / 8),
                pool: [700, 700, 534, 0, 9],
                ..Host::default()
            },
            |facts| {
                may_refuse_pending(facts, LockLimit::Unexplained);
            },
        ),
        changed(
            "memlock, and a pool of which the kernel gave fewer than sysctl.d asks for",
            Host {
                pool: [500, 500, 0, 0, 9],
                ..Host::default()
            },
            |facts| {
                lock(
                    facts,
                    LockLimit::Memlock {
                        limit: Bytes(64 << 10),
                        others: Bytes(0),
                    },
                );
                let file = "/etc/sysctl.d/98-oracle.conf".to_owned();
                facts.next_boot = Some(PoolAtBoot::Set(Pages(534), file));
            },
        ),
        changed("kernel.shmmni", Host::default(), |facts| {
            lock(facts, LockLimit::Shmmni { limit: 4096 })
        }),
        changed("nobody knows what refused an SGA", full(), |facts| {
            lock(facts, LockLimit::Unexplained)
        }),
        changed(
            "nobody knows what may refuse an SGA",
            Host {
                pool: [600, 600, 534, 0, 9],
                ..Host::default()
            },
            |facts| {
                lock(facts, LockLimit::Unexplained);
            },
        ),
        changed(
            "nobody knows what may refuse an SGA that a cgroup limits",
            Host {
                pool: [600, 600, 534, 0, 9],
                ..Host::default()
            },
            |facts| {
                lock(facts, LockLimit::Unexplained);
                let (path, promised) = ("/sys/fs/cgroup/a/hugetlb.2MB.max".to_owned(), None);
                let limit = CgroupLimit {
                    path,
                    limit: Bytes(GIB),
                    usage: Bytes(0),
                    promised,
                };
                facts.pool_state.limits = Some(CgroupLimits {
                    fault: vec![limit],
                    ..CgroupLimits::default()
                });
            },
        ),
        changed(
            "kernel.shmmni, in base pages by choice",
            base([0; 5]),
            |facts| {
                lock(facts, LockLimit::Shmmni { limit: 4096 });
                oracle(facts, Some(UseLargePages::False));
            },
        ),
        changed(
            "kernel.shmmni, in base pages by choice of the next start alone",
            Host {
                on_disk: Some(2 * GIB),
                ..base([600, 600, 0, 0, 9])
            },
            |facts| {
                lock(facts, LockLimit::Shmmni { limit: 4096 });
                oracle(facts, Some(UseLargePages::False));
                let (requested, limit) = (facts.requested, facts.pool_state.lock_limit);
                let Pending::Changed(demand, pool_state) = &mut facts.pending else {
                    unreachable!()
                };
                (demand.requested, pool_state.lock_limit) = (requested, limit);
            },
        ),
    ]
}
