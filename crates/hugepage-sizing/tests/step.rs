//! The step of a whole host.

use hugepage_assess::advice::plan::Step;
use hugepage_assess::advice::recommendation::Effect;
use hugepage_assess::assessment::Severity;
use hugepage_assess::assessment::capacity::{Capacity, HostMemory};
use hugepage_assess::model::PagesOfStrangers;
use hugepage_facts::InstanceKey;
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::{Bytes, PageSize, Pages};
use hugepage_sizing::{PoolNeed, Sizing};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn page_size(bytes: u64) -> PageSize {
    PageSize::new(bytes).unwrap()
}

fn pool(nr: u64, free: u64, resv: u64) -> Pool {
    Pool {
        page_size: page_size(2 * MIB),
        nr: Pages(nr),
        free: Pages(free),
        resv: Some(Pages(resv)),
        surplus: Some(Pages(0)),
        overcommit: Some(Pages(0)),
    }
}

fn set_pool(size: u64, pages: u64) -> Step {
    Step::SetPool {
        size: page_size(size),
        is_default: true,
        pages: Pages(pages),
        after_stop: false,
        leaves: None,
    }
}

/// The pool of a whole host: its step and its row.
#[test]
fn the_pool_for_all_servers() {
    let sizing = |nr, needs: &[(u64, bool)], available| {
        let pool_now = pool(nr, nr, 0);
        let memory = HostMemory {
            mem_total: Bytes(16 * GIB),
            available,
            movable: Bytes(0),
            reserve_percent: 20,
            commit_left: None,
            elsewhere: Bytes(0),
        };
        let capacity = Capacity::of_pool(&memory, &pool_now);
        let need = |(at, &(pages, is_running)): (usize, &(u64, bool))| {
            let (running, held) = (if is_running { Pages(pages) } else { Pages(0) }, Pages(0));
            PoolNeed {
                pages: Pages(pages),
                running,
                held,
                is_running,
                ..PoolNeed::of(InstanceKey {
                    name: format!("pg{at}"),
                    ..InstanceKey::default()
                })
            }
        };
        let needs = needs.iter().enumerate().map(need).collect();
        (
            Sizing::new(
                &pool_now,
                needs,
                PagesOfStrangers::default(),
                Some(capacity),
            ),
            pool_now,
        )
    };
    let (alone, now) = sizing(100, &[(300, true)], None);
    assert_eq!(alone.step(&now, true), Some(set_pool(2 * MIB, 300)));
    let row = alone
        .row(&now, true, Severity::Warning, "; qemu holds 7")
        .unwrap();
    assert_eq!(
        (row.current.as_deref(), row.recommended.as_deref()),
        (Some("100"), Some("300"))
    );
    assert_eq!(
        row.command.as_deref(),
        Some("sysctl -w vm.nr_hugepages=300")
    );
    assert_eq!(row.takes_effect, Effect::ServerRestart);
    assert_eq!(
        row.reason,
        "pg0 needs 300 pages of 2 MB, other processes hold 0, and the pool's 100 pages are 200 too few; qemu holds 7."
    );
    let (enough, now) = sizing(300, &[(300, true)], None);
    assert_eq!(
        (
            enough.step(&now, true),
            enough.row(&now, true, Severity::Warning, "")
        ),
        (None, None)
    );
    let (several, now) = sizing(0, &[(300, true), (70, false), (2, false)], None);
    assert_eq!(
        several.by_stopped().as_deref(),
        Some("of which 72 for 2 stopped servers")
    );
    let reason = several
        .row(&now, true, Severity::Notice, "")
        .unwrap()
        .reason;
    assert!(
        reason.starts_with(
            "The 3 instances of this host need 372 pages of 2 MB (of which 72 for 2 stopped"
        ),
        "{reason}"
    );
    let (one, _) = sizing(0, &[(300, true), (70, false)], None);
    assert_eq!(
        one.by_stopped().as_deref(),
        Some("of which 70 for 1 stopped server")
    );
    assert_eq!(alone.by_stopped(), None);
    // More than 80% of memory, as the host has it.
    let (beyond, now) = sizing(0, &[(7000, true)], Some(Bytes(16 * GIB)));
    let Some(Step::SetPool { leaves, .. }) = beyond.step(&now, true) else {
        unreachable!()
    };
    assert_eq!(leaves, Some((Bytes(16 * GIB - 7000 * 2 * MIB), 20)));
    let reason = beyond
        .row(&now, true, Severity::Warning, "")
        .unwrap()
        .reason;
    assert!(
        reason.ends_with("; a pool of 7000 pages leaves 2384 MB to base pages, less than 20%."),
        "{reason}"
    );
}
