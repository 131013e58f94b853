//! What a host can hold: within the reserve, now, and at all.

use hugepage_assess::advice;
use hugepage_assess::assessment::capacity::{Capacity, HostMemory};
use hugepage_assess::assessment::{Finding, Severity, Status};
use hugepage_assess::model::Facts;
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::{Bytes, Pages};

use super::{GIB, MIB, Server, known, page_size, pool};

fn memory(mem_total: u64, available: Option<u64>) -> HostMemory {
    HostMemory {
        mem_total: Bytes(mem_total),
        available: available.map(Bytes),
        movable: Bytes(0),
        reserve_percent: 20,
        commit_left: None,
        elsewhere: Bytes(0),
    }
}

#[test]
fn within_the_reserve() {
    for (total, reserve_percent, elsewhere, size, pages) in [
        (16 * GIB, 0, 0, 2 * MIB, 8192),
        (16 * GIB, 20, 0, 2 * MIB, 6553),
        (16 * GIB, 20, 4 * GIB, 2 * MIB, 4505),
        (16 * GIB, 20, 0, GIB, 12),
        (16 * GIB, 100, 0, 2 * MIB, 0),
        (16 * GIB, 250, 0, 2 * MIB, 0),
        (16 * GIB, 20, 16 * GIB, 2 * MIB, 0),
        (2 * MIB, 0, 0, 2 * MIB, 1),
        (2 * MIB - 1, 0, 0, 2 * MIB, 0),
        (8 * GIB, 20, 0, 16 * GIB, 0),
        (u64::MAX, 0, 0, 1, u64::MAX),
    ] {
        let memory = HostMemory {
            reserve_percent,
            elsewhere: Bytes(elsewhere),
            ..memory(total, None)
        };
        let pool = Pool {
            page_size: page_size(size),
            ..pool(0, 0, 0)
        };
        let found = Capacity::of_pool(&memory, &pool);
        assert_eq!(
            found.within_reserve,
            Pages(pages),
            "{total} {reserve_percent} {elsewhere} {size}"
        );
        // Nothing is measured.
        assert_eq!((found.now, found.most), (Pages(pages), Pages(pages)));
    }
}

#[test]
fn as_measured() {
    // 2% of 100 GB stay available.
    for (what, available, movable, pool, [now, most]) in [
        ("an idle host", 92, 0, pool(0, 0, 0), [90, 90]),
        ("a busy host", 12, 0, pool(0, 0, 0), [10, 10]),
        ("nothing left", 1, 0, pool(0, 0, 0), [0, 0]),
        ("shared memory moves", 12, 30, pool(0, 0, 0), [10, 40]),
        ("beside a pool", 12, 0, pool(50, 50, 0), [60, 60]),
        ("a pool beyond the reserve", 1, 0, pool(95, 0, 0), [95, 95]),
        ("no more than there is", 99, 30, pool(0, 0, 0), [97, 100]),
    ] {
        let memory = HostMemory {
            movable: Bytes(movable * GIB),
            ..memory(100 * GIB, Some(available * GIB))
        };
        let found = Capacity::of_pool(
            &memory,
            &Pool {
                page_size: page_size(GIB),
                ..pool
            },
        );
        assert_eq!([found.now, found.most], [Pages(now), Pages(most)], "{what}");
        assert_eq!(found.within_reserve, Pages(80), "{what}");
    }
}

/// With vm.overcommit_memory = 2 a larger pool lowers at once what processes can be promised.
#[test]
fn within_what_processes_can_be_promised() {
    for (left, now) in [(10, 60), (0, 50), (1000, 90)] {
        let memory = HostMemory {
            commit_left: Some(Bytes(left * GIB)),
            ..memory(100 * GIB, Some(42 * GIB))
        };
        let found = Capacity::of_pool(
            &memory,
            &Pool {
                page_size: page_size(GIB),
                ..pool(50, 50, 0)
            },
        );
        assert_eq!([found.now, found.most], [Pages(now), Pages(90)], "{left}");
    }
}

/// A host of 64 GB whose pool of 27852 pages, all of them held, is beyond its reserve of 20%.
#[test]
fn a_pool_beyond_the_reserve_that_is_held() {
    let held = Server {
        size: 27852 * 2 * MIB,
        pool: known(pool(27852, 0, 0)),
        memory: 64 * GIB,
        available: Some(GIB),
        ..Server::default()
    };
    let status = held.clone().status();
    assert_eq!(status.recommended, Some(Pages(27852)));
    assert_eq!(status.verdict(), (Severity::Ok, &Finding::AsRequested));
    // Lowered under the server.
    let pool = Pool {
        surplus: Some(Pages(27852)),
        ..pool(27852, 0, 0)
    };
    let status = Server {
        pool: known(pool),
        ..held
    }
    .status();
    assert_eq!(
        advice::hint(&status).as_deref(),
        Some(seen!("Run \"sysctl -w vm.nr_hugepages=27852", "."))
    );
}

#[test]
fn beyond_the_reserve_a_number_comes_with_a_caution() {
    let server = Server {
        size: 14 * GIB,
        available: Some(15 * GIB),
        ..Server::in_base_pages()
    };
    let status = server.clone().status();
    assert_eq!(status.recommended, Some(Pages(7168)));
    assert_eq!(
        advice::hint(&status).as_deref(),
        Some(
            "Run \"sysctl -w vm.nr_hugepages=7168\" and restart the server; this leaves 2 GB of memory to base pages, less than 20%. \
             The number counts all servers seen here; `hugepage-sidecar size` counts the whole host."
        )
    );
    // The memory comes back only when the server stops.
    let touched = Server {
        size: 10 * GIB,
        available: Some(4 * GIB),
        shmem: 10 * GIB,
        ..server
    };
    assert_eq!(
        advice::hint(&touched.clone().status()).as_deref(),
        Some(seen!(
            "Stop the server, run \"sysctl -w vm.nr_hugepages=5120",
            " and start the server."
        ))
    );
    // Of several, all have some of it.
    let of_several = Facts {
        others_lack: Some(Pages(8)),
        ..touched.clone().facts()
    };
    let hint = advice::hint(&Status::assess(of_several)).unwrap();
    let is_of_all = hint.starts_with("Stop this server and all others that lack pages, run ")
        && hint.contains(" and start them. The number counts ");
    assert!(is_of_all, "{hint}");
    // Other programs have it.
    let full = Server {
        shmem: 0,
        ..touched
    }
    .status();
    assert!(
        full.does_not_fit() && full.recommended < Some(Pages(2048)),
        "{full:?}"
    );
    assert!(
        advice::hint(&full)
            .unwrap()
            .starts_with("Reduce shared_buffers until shared memory takes at most "),
        "{full:?}"
    );
}

/// What is to be reduced fits into the reserve, unless nothing of it does.
#[test]
fn a_comfortable_pool() {
    let pool = pool(0, 0, 0);
    let of = |available| Capacity::of_pool(&memory(10 * GIB, available), &pool);
    let (reserve, most) = (of(None).within_reserve, of(Some(10 * GIB)).most);
    assert!(most > reserve);
    let measured = of(Some(10 * GIB));
    assert_eq!(
        measured.comfortable(reserve.saturating_sub(Pages(1))),
        reserve
    );
    assert_eq!(measured.comfortable(reserve), most);
    assert_eq!(of(Some(GIB)).comfortable(Pages(0)), of(Some(GIB)).most);
    let size = page_size(2 * MIB);
    let left = Bytes(10 * GIB).saturating_sub(size.times(most));
    assert_eq!(
        (
            measured.leaves_less(reserve, size),
            measured.leaves_less(most, size)
        ),
        (None, Some((left, 20)))
    );
    let there = Capacity {
        nr: most,
        ..measured
    };
    assert_eq!(there.leaves_less(most, size), None);
}
