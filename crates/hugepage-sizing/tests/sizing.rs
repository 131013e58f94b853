//! The pool of a host: what fits, and what a server that does not run needs.

use hugepage_assess::assessment::capacity::{Capacity, HostMemory};
use hugepage_assess::model::PagesOfStrangers;
use hugepage_facts::InstanceKey;
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::{Bytes, PageSize, Pages};
use hugepage_sizing::{Misfit, PoolNeed, Sizing, StoppedDatabase, Wants};
use proptest::prelude::*;

const GB: u64 = 1 << 30;

fn need(name: &str, pages: u64, held: u64, is_running: bool) -> PoolNeed {
    let running = if is_running { Pages(pages) } else { Pages(0) };
    PoolNeed {
        pages: Pages(pages),
        running,
        held: Pages(held),
        is_running,
        ..PoolNeed::of(key(name))
    }
}

fn key(name: &str) -> InstanceKey {
    InstanceKey {
        name: name.to_owned(),
        ..InstanceKey::default()
    }
}

/// Nothing is known of what is available: 20% stay for base pages, beside a pool of `held` pages, all of them in use.
fn room(gb: u64, held: u64) -> Option<Capacity> {
    let (mem_total, elsewhere) = (Bytes(gb * GB), Bytes(0));
    let memory = HostMemory {
        mem_total,
        available: None,
        movable: Bytes(0),
        reserve_percent: 20,
        commit_left: None,
        elsewhere,
    };
    Some(Capacity::of_pool(&memory, &full(held)))
}

/// A pool whose pages are all in use.
fn full(held: u64) -> Pool {
    Pool {
        page_size: huge(),
        nr: Pages(held),
        free: Pages(0),
        resv: Some(Pages(0)),
        surplus: Some(Pages(0)),
        overcommit: None,
    }
}

fn huge() -> PageSize {
    PageSize::from_kib(2048).unwrap()
}

/// The host of the seed: a pool of 9216 pages, one instance in huge pages as a whole, one in part, one not at all.
#[test]
fn a_farm() {
    let needs = vec![
        need("FULL", 537, 537, true),
        need("MIXED", 2001, 2000, true),
        need("EMPTY", 267, 0, true),
    ];
    let sizing = Sizing::new(
        &full(9216),
        needs,
        PagesOfStrangers::default(),
        room(48, 9216),
    );
    assert_eq!(
        (sizing.others, sizing.total, sizing.recommended),
        (Pages(6679), Pages(9484), Some(Pages(9484)))
    );
    assert!(sizing.misfits.is_empty());
    assert_eq!(
        (sizing.fitting(), sizing.counted_others()),
        (Pages(2805), Pages(6679))
    );
    assert_eq!(sizing.remains, Some(Bytes(48 * GB - (9484 << 21))));
}

/// The seed's host of 48 GB, for which hugepages_settings.sh had printed 36569 pages, which are 71 GB.
#[test]
fn more_than_the_host_has() {
    let needs = vec![
        need("A", 4096, 4096, true),
        need("B", 32473, 0, true),
        need("C", 100, 0, false),
    ];
    let sizing = Sizing::new(
        &full(4096),
        needs,
        PagesOfStrangers::default(),
        room(48, 4096),
    );
    assert_eq!(
        (sizing.total, sizing.capacity.unwrap().most),
        (Pages(36669), Pages(19660))
    );
    assert_eq!(sizing.recommended, Some(Pages(4196)));
    assert_eq!(
        sizing.misfits,
        [Misfit {
            key: key("B"),
            name: "B".into(),
            pages: Pages(32473),
            over: Pages(16909),
            counted: Pages(0)
        }]
    );
    assert_eq!(
        Sizing::new(
            &full(0),
            vec![need("A", 1, 0, true)],
            PagesOfStrangers::default(),
            None
        )
        .recommended,
        None
    );
}

#[test]
fn of_one_size() {
    let strangers = PagesOfStrangers {
        pages: Pages(30),
        largest: None,
        ..PagesOfStrangers::default()
    };
    let sizing = Sizing::new(
        &full(100),
        vec![need("A", 339, 0, true)],
        strangers,
        room(1, 100),
    );
    assert_eq!(
        (sizing.counted_others(), sizing.recommended),
        (Pages(70), Some(Pages(409)))
    );
    let gigantic = Sizing {
        page_size: PageSize::from_kib(1 << 20).unwrap(),
        ..sizing.clone()
    };
    let sizings = [gigantic, sizing.clone()];
    assert_eq!(Sizing::of_size(&sizings, huge()), Some(&sizing));
    assert_eq!(Sizing::of_size(&sizings[..1], huge()), None);
}

/// A running server whose configuration on disk the host cannot hold still has its need, and nobody's pages are taken.
#[test]
fn what_runs_is_needed_whatever_is_on_disk() {
    let needs = vec![PoolNeed {
        running: Pages(140),
        ..need("A", 15_360, 0, true)
    }];
    let pool = Pool {
        free: Pages(100),
        ..full(100)
    };
    let sizing = Sizing::new(&pool, needs, PagesOfStrangers::default(), room(24, 100));
    assert_eq!(
        (sizing.recommended, sizing.misfits.len()),
        (Some(Pages(140)), 1)
    );
    // Whoever needs the others is not known.
    let sizing = Sizing::new(
        &Pool {
            free: Pages(60),
            ..full(200)
        },
        vec![need("A", 140, 140, true)],
        PagesOfStrangers::default(),
        room(24, 200),
    );
    assert_eq!(sizing.recommended, Some(Pages(200)));
}

proptest! {
    #[test]
    fn never_more_than_the_host_holds_and_never_less_than_those_that_fit(
        pages in proptest::collection::vec((0u64..10_000, 0u64..10_000, any::<bool>()), 0..8),
        beside in 0u64..5_000,
        memory in 1u64..64,
    ) {
        let needs: Vec<_> =
            pages.iter().map(|&(pages, held, running)| need(&format!("{pages}"), pages, held.min(pages), running)).collect();
        let held: u64 = needs.iter().map(|need| need.held.0).sum();
        let sizing = Sizing::new(&full(held + beside), needs.clone(), PagesOfStrangers::default(), room(memory, held + beside));
        let recommended = sizing.recommended.unwrap();
        prop_assert!(recommended <= sizing.capacity.unwrap().most && recommended >= Pages(held + beside));
        let misfits: u64 = sizing.misfits.iter().map(|misfit| misfit.pages.0).sum();
        let all: u64 = needs.iter().map(|need| need.pages.0).sum();
        prop_assert_eq!(sizing.total.0, all + beside);
        prop_assert!(recommended.0 >= all - misfits + beside);
        prop_assert!(sizing.misfits.iter().all(|misfit| misfit.over > Pages(0)));
    }
}

#[test]
fn servers_that_do_not_run() {
    let stopped = |wants| StoppedDatabase {
        key: key("orcl"),
        page_size: None,
        wants,
        is_automatic: false,
        remark: None,
    };
    let [pages, none, unknown] = [
        Wants::Pages(Pages(7)),
        Wants::None("FALSE".into()),
        Wants::Unknown("why".to_owned()),
    ];
    assert_eq!(
        [pages.pages(), none.pages(), unknown.pages()],
        [Some(Pages(7)), Some(Pages(0)), None]
    );
    let (size, need) = stopped(pages).need().unwrap();
    assert_eq!(
        (size, &*need.name, need.pages, need.held, need.is_running),
        (None, "orcl", Pages(7), Pages(0), false)
    );
    assert!(stopped(none).need().is_none() && stopped(unknown).need().is_none());
}

/// Two containers of one image: the same name and the same need, and only one of them fits.
#[test]
fn who_does_not_fit_is_told_by_its_key() {
    let in_container = |container: &str, held| PoolNeed {
        held: Pages(held),
        ..PoolNeed {
            key: InstanceKey {
                container: Some(container.to_owned()),
                ..key("/data")
            },
            ..need("/data", 4200, 0, true)
        }
    };
    let needs = vec![in_container("8.1-1", 4200), in_container("8.1-2", 0)];
    let pool = Pool {
        free: Pages(0),
        ..full(4200)
    };
    let sizing = Sizing::new(&pool, needs, PagesOfStrangers::default(), room(12, 4200));
    let counted: Vec<_> = sizing.needs.iter().map(|one| sizing.counted(one)).collect();
    assert_eq!(counted, [Pages(4200), Pages(0)]);
}
