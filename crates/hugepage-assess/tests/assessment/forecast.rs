//! What a start would get: every refusal at its border, and that nothing is promised that is not there.

use hugepage_assess::advice::message::pending::refusal;
use hugepage_assess::assessment::{Forecast, Outlook, Start};
use hugepage_assess::model::{HugePages, LockLimit, PoolFact, PoolState, Product, Requested};
use hugepage_facts::Cause;
use hugepage_kernel::cgroups::cgroup::{CgroupLimit, CgroupLimits};
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::{Bytes, PageSize, Pages};
use proptest::prelude::*;

use super::effect::lost;
use super::{MIB, page_size};

fn page() -> PageSize {
    page_size(2 * MIB)
}

fn requested(huge_pages: HugePages, sysv: bool) -> Requested {
    Requested {
        product: Product::PostgreSql,
        huge_pages,
        huge_page_size: None,
        sysv,
        shared_buffers: Bytes(0),
        io_uring: false,
    }
}

/// nr, free, resv, surplus, overcommit.
fn forecast_of(
    requested: &Requested,
    size: Option<Bytes>,
    pool_state: &PoolState,
    own: Pages,
) -> Forecast {
    let start = Start {
        requested: *requested,
        size,
        pool_state,
        own,
    };
    start.forecast()
}

fn pool_state(counters: [u64; 5], limits: CgroupLimits) -> PoolState {
    let [nr, free, resv, surplus, overcommit] = counters;
    let pool = Pool {
        page_size: page(),
        nr: Pages(nr),
        free: Pages(free),
        resv: Some(Pages(resv)),
        surplus: Some(Pages(surplus)),
        overcommit: Some(Pages(overcommit)),
    };
    PoolState {
        huge_page_size: Some(page()),
        pool: PoolFact::Known(pool),
        limits: Some(limits),
        nodes: None,
        lock_limit: None,
        base_limits: Vec::new(),
    }
}

fn limit(megabytes: u64, usage: u64) -> CgroupLimit {
    CgroupLimit {
        path: "/limit".to_owned(),
        limit: Bytes(megabytes * MIB),
        usage: Bytes(usage * MIB),
        promised: None,
    }
}

#[test]
fn table_of_starts() {
    use HugePages::{Off, On, Try};
    let reserved = |megabytes, usage| CgroupLimits {
        reservation: vec![limit(megabytes, usage)],
        ..CgroupLimits::default()
    };
    let fault = |megabytes| CgroupLimits {
        fault: vec![limit(megabytes, 0)],
        ..CgroupLimits::default()
    };
    let hidden = CgroupLimits {
        hidden_levels: true,
        ..CgroupLimits::default()
    };
    let none = CgroupLimits::default();
    // Needs 70 pages. What is asked, own pages, pool, limits: outlook, guaranteed, missing, cause.
    for (huge_pages, own, counters, limits, outlook, guaranteed, missing, cause) in [
        (
            Try,
            0,
            [70, 70, 0, 0, 0],
            none.clone(),
            "hugetlb",
            70,
            0,
            "",
        ),
        (
            Try,
            0,
            [69, 69, 0, 0, 0],
            none.clone(),
            "base",
            69,
            1,
            "pool_too_small",
        ),
        (
            On,
            0,
            [69, 69, 0, 0, 0],
            none.clone(),
            "fails",
            69,
            1,
            "pool_too_small",
        ),
        (
            Try,
            0,
            [0, 0, 0, 0, 0],
            none.clone(),
            "base",
            0,
            70,
            "pool_empty",
        ),
        (
            Try,
            0,
            [100, 90, 30, 0, 0],
            none.clone(),
            "base",
            60,
            10,
            "pool_taken",
        ),
        // Its own pages come back to it, touched or promised.
        (
            Try,
            70,
            [70, 20, 20, 0, 0],
            none.clone(),
            "hugetlb",
            70,
            0,
            "",
        ),
        (
            Try,
            70,
            [70, 70, 70, 0, 0],
            none.clone(),
            "hugetlb",
            70,
            0,
            "",
        ),
        // The pool was lowered: its pages are surplus and go with it.
        (
            Try,
            70,
            [70, 0, 0, 70, 0],
            none.clone(),
            "base",
            0,
            70,
            "pool_empty",
        ),
        (
            On,
            70,
            [70, 0, 0, 69, 0],
            none.clone(),
            "fails",
            1,
            69,
            "pool_too_small",
        ),
        // Surplus pages may be found or not.
        (
            Try,
            0,
            [0, 0, 0, 0, 70],
            none.clone(),
            "unknown",
            0,
            70,
            "pool_empty",
        ),
        (
            Try,
            0,
            [69, 69, 0, 0, 1],
            none.clone(),
            "unknown",
            69,
            1,
            "pool_too_small",
        ),
        (
            Try,
            0,
            [70, 70, 0, 0, 0],
            reserved(139, 0),
            "base",
            69,
            1,
            "cgroup_limit",
        ),
        (
            Try,
            0,
            [70, 70, 0, 0, 0],
            reserved(140, 0),
            "hugetlb",
            70,
            0,
            "",
        ),
        (
            Try,
            70,
            [70, 0, 0, 0, 0],
            reserved(140, 140),
            "hugetlb",
            70,
            0,
            "",
        ),
        (
            On,
            0,
            [70, 70, 0, 0, 0],
            reserved(200, 100),
            "fails",
            50,
            20,
            "cgroup_limit",
        ),
        // It starts, and dies of it later.
        (
            Try,
            0,
            [70, 70, 0, 0, 0],
            fault(139),
            "hugetlb",
            70,
            0,
            "cgroup_limit",
        ),
        (
            Try,
            0,
            [70, 70, 0, 0, 0],
            hidden,
            "unknown",
            70,
            0,
            "unknown",
        ),
        (Off, 0, [70, 70, 0, 0, 0], none, "base", 70, 0, "disabled"),
    ] {
        let case = format!("{huge_pages} {own} {counters:?} {limits:?}");
        let forecast = forecast_of(
            &requested(huge_pages, false),
            Some(Bytes(139 * MIB + 8192)),
            &pool_state(counters, limits),
            Pages(own),
        );
        assert_eq!(forecast.outlook.to_string(), outlook, "{case}");
        assert_eq!(forecast.needed, Some(Pages(70)), "{case}");
        assert_eq!(
            (forecast.guaranteed, forecast.missing),
            (Some(Pages(guaranteed)), Some(Pages(missing))),
            "{case}"
        );
        assert_eq!(
            forecast
                .cause
                .map(|cause| cause.to_string())
                .unwrap_or_default(),
            cause,
            "{case}"
        );
    }
}

#[test]
fn what_no_pool_could_mend() {
    let enough = pool_state([700, 700, 0, 0, 0], CgroupLimits::default());
    let sysv = forecast_of(
        &requested(HugePages::On, true),
        Some(Bytes(MIB)),
        &enough,
        Pages(0),
    );
    assert_eq!(
        (sysv.outlook, sysv.cause),
        (Outlook::Fails, Some(Cause::SysvSharedMemory))
    );
    let nowhere = PoolState {
        pool: PoolFact::Unsupported(vec![page()]),
        ..enough
    };
    let forecast = forecast_of(
        &requested(HugePages::Try, false),
        Some(Bytes(MIB)),
        &nowhere,
        Pages(0),
    );
    assert_eq!((forecast.outlook, forecast.needed), (Outlook::Base, None));
    assert_eq!(forecast.cause, Some(Cause::PageSizeUnsupported));
    assert_eq!(
        forecast.will_start(&requested(HugePages::Try, false)),
        Some(true)
    );
    assert_eq!(
        Forecast::default().will_start(&requested(HugePages::On, false)),
        None
    );
}

/// A limit of the kernel is the cause where it refuses the start, not where the pool does.
#[test]
fn the_kernel_refuses_after_the_pool() {
    let cause = |counters, lock_limit| {
        let pool_state = PoolState {
            lock_limit: Some(lock_limit),
            ..pool_state(counters, CgroupLimits::default())
        };
        let size = Some(Bytes(140 * MIB));
        forecast_of(
            &requested(HugePages::Try, false),
            size,
            &pool_state,
            Pages(0),
        )
        .cause
        .unwrap()
    };
    let memlock = LockLimit::Memlock {
        limit: Bytes(MIB),
        others: Bytes(0),
    };
    let (few, enough) = ([10, 10, 0, 0, 0], [70, 70, 0, 0, 0]);
    assert_eq!(
        [few, enough].map(|pool| cause(pool, memlock)),
        [Cause::PoolTooSmall, Cause::MemlockLimit]
    );
    assert_eq!(
        [few, enough].map(|pool| cause(pool, LockLimit::Shmmni { limit: 1 })),
        [Cause::ShmLimit; 2]
    );
}

#[test]
fn whether_a_server_starts() {
    use Outlook::{Base, Fails, Hugetlb, Mixed, Unknown};
    let of = |outlook, requested| {
        Forecast {
            outlook,
            ..Forecast::default()
        }
        .will_start(&requested)
    };
    let starts = |outlook, huge_pages| of(outlook, requested(huge_pages, false));
    assert_eq!(
        [Hugetlb, Mixed, Base].map(|outlook| starts(outlook, HugePages::On)),
        [Some(true); 3]
    );
    assert_eq!(starts(Fails, HugePages::Try), Some(false));
    assert_eq!(
        (
            starts(Unknown, HugePages::On),
            starts(Unknown, HugePages::Try)
        ),
        (None, Some(true))
    );
    // Whatever the pages, the kernel may refuse its rings.
    let with_rings = |outlook| {
        of(
            outlook,
            Requested {
                io_uring: true,
                ..requested(HugePages::Try, false)
            },
        )
    };
    assert_eq!(
        [Hugetlb, Base, Unknown, Fails].map(with_rings),
        [None, None, None, Some(false)]
    );
}

proptest! {
    /// Huge pages are foretold only if they are there for the taking, and always if they are.
    #[test]
    fn huge_pages_are_foretold_exactly_if_they_are_certain(
        own in 0u64..500, others in 0u64..500, idle in 0u64..500, touched in 0u64..1000, surplus in 0u64..1000,
        size in 1u64..(1 << 31), on: bool,
    ) {
        let nr = own + others + idle;
        let surplus = surplus.min(nr);
        let used = touched.min(own + others);
        let counters = [nr, nr - used, own + others - used, surplus, 0];
        let huge_pages = if on { HugePages::On } else { HugePages::Try };
        let pool_state = pool_state(counters, CgroupLimits::default());
        let forecast = forecast_of(&requested(huge_pages, false), Some(Bytes(size)), &pool_state, Pages(own));
        let needed = size.div_ceil(2 * MIB);
        let certain = (nr - surplus).saturating_sub(others);
        prop_assert_eq!(forecast.needed, Some(Pages(needed)));
        prop_assert_eq!(forecast.guaranteed, Some(Pages(certain)));
        prop_assert_eq!(forecast.outlook == Outlook::Hugetlb, certain >= needed);
        prop_assert_eq!(forecast.outlook == Outlook::Fails, on && certain < needed);
        prop_assert_eq!(forecast.missing == Some(Pages(0)), forecast.cause.is_none());
        // Never fewer pages for more memory.
        let larger = forecast_of(&requested(huge_pages, false), Some(Bytes(size + 8192)), &pool_state, Pages(own));
        prop_assert!(larger.needed >= forecast.needed && larger.missing >= forecast.missing);
        prop_assert!(lost(larger.outlook) >= lost(forecast.outlook));
    }
}

/// The error of the server, by what refuses its start.
#[test]
fn the_error_of_a_refused_start() {
    let enough = pool_state([700, 700, 0, 0, 0], CgroupLimits::default());
    let nowhere = PoolState {
        pool: PoolFact::Unsupported(vec![page()]),
        ..enough.clone()
    };
    for (pool_state, sysv, expected) in [
        (&enough, true, None),
        (
            &nowhere,
            false,
            Some("could not map anonymous shared memory: Invalid argument"),
        ),
        (
            &enough,
            false,
            Some("could not map anonymous shared memory: Cannot allocate memory"),
        ),
    ] {
        assert_eq!(refusal(pool_state, sysv), expected);
    }
}
