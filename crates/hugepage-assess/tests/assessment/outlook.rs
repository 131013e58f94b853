//! Who has what of a pool, what a restart would get of it, and what a host can hold.

use hugepage_assess::assessment::{Outlook, Share, Status};
use hugepage_assess::model::{
    Demand, HugePages, Pending, PoolFact, PoolState, landing_of, landing_seen,
};
use hugepage_facts::{Landing, TransparentPages};
use hugepage_kernel::cgroups::cgroup::CgroupLimits;
use hugepage_kernel::mapping::maps;
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::next_boot::PoolAtBoot;
use hugepage_kernel::{Bytes, PageSize, Pages};

use super::{GIB, KIB, MIB, Server, fault, hidden, known, limit, page_size, pool, reservation};

fn surplus(pool: Pool, surplus: u64, overcommit: u64) -> Pool {
    Pool {
        surplus: Some(Pages(surplus)),
        overcommit: Some(Pages(overcommit)),
        ..pool
    }
}

/// The restart that loses them now is not all: the file that was to set the pool has the same number.
#[test]
fn a_pool_that_was_lowered_below_the_server() {
    for (at_boot, found) in [(100, true), (512, false)] {
        let mut facts = Server {
            pool: known(surplus(pool(512, 0, 0), 412, 0)),
            ..Server::default()
        }
        .facts();
        facts.next_boot = Some(PoolAtBoot::Set(Pages(at_boot), "/etc/a.conf".to_owned()));
        let status = Status::assess(facts);
        assert_eq!(status.forecast.outlook, Outlook::Base);
        let mut findings = status.findings.iter().map(|(_, finding)| finding.name());
        assert_eq!(
            findings.any(|name| name == "boot_loses"),
            found,
            "{at_boot}"
        );
    }
}

#[test]
fn shares() {
    for (what, pool, own, [persistent, others, guaranteed, hopeful]) in [
        (
            "all own, untouched",
            pool(512, 512, 512),
            512,
            [512, 0, 512, 512],
        ),
        ("all own, touched", pool(512, 0, 0), 512, [512, 0, 512, 512]),
        (
            "all own, half touched",
            pool(512, 256, 256),
            512,
            [512, 0, 512, 512],
        ),
        ("all of others", pool(512, 0, 0), 0, [512, 512, 0, 0]),
        (
            "others' promises count",
            pool(1000, 900, 700),
            500,
            [1000, 300, 700, 700],
        ),
        ("nobody's", pool(1000, 1000, 0), 0, [1000, 0, 1000, 1000]),
        (
            "surplus goes with its user",
            surplus(pool(512, 0, 0), 512, 0),
            512,
            [0, 0, 0, 0],
        ),
        (
            "surplus may be found again",
            surplus(pool(512, 0, 0), 512, 600),
            512,
            [0, 0, 0, 600],
        ),
        (
            "others on surplus",
            surplus(pool(812, 0, 0), 300, 0),
            512,
            [512, 300, 212, 212],
        ),
        (
            "others hold all surplus pages",
            surplus(pool(70, 0, 0), 70, 70),
            0,
            [0, 70, 0, 0],
        ),
        (
            "others hold some surplus pages",
            surplus(pool(70, 0, 0), 70, 100),
            0,
            [0, 70, 0, 30],
        ),
        (
            "its own surplus pages come back first",
            surplus(pool(140, 0, 0), 100, 100),
            70,
            [40, 70, 0, 70],
        ),
        (
            "counters read while they moved",
            pool(512, 600, 0),
            512,
            [512, 0, 512, 512],
        ),
        (
            "more own than the pool has",
            pool(100, 0, 0),
            512,
            [100, 0, 100, 100],
        ),
    ] {
        let expected = Share {
            persistent: Pages(persistent),
            others: Pages(others),
            guaranteed: Pages(guaranteed),
            hopeful: Pages(hopeful),
        };
        assert_eq!(
            Share::of_server(&pool, Pages(own)),
            Some(expected),
            "{what}"
        );
    }
    assert_eq!(
        Share::of_server(
            &Pool {
                resv: None,
                ..pool(512, 512, 0)
            },
            Pages(0)
        ),
        None
    );
    assert!(
        Share::of_server(
            &Pool {
                resv: None,
                ..pool(0, 0, 0)
            },
            Pages(0)
        )
        .is_some(),
        "no page can be promised"
    );
}

/// The outlook under `try`, of a server that needs 512 pages. Under `on`, `base` is `fails`; under `off` all is `base`.
#[test]
fn outlooks() {
    let huge = Server::default();
    let base = Server::in_base_pages();
    let two_levels = CgroupLimits {
        reservation: vec![limit(900 * MIB, 0), limit(4 * GIB, 3 * GIB + 200 * MIB)],
        ..CgroupLimits::default()
    };
    let cases = [
        ("all own", huge.clone(), Outlook::Hugetlb),
        (
            "a pool one page short",
            Server {
                pool: known(pool(511, 0, 0)),
                ..huge.clone()
            },
            Outlook::Base,
        ),
        (
            "surplus only",
            Server {
                pool: known(surplus(pool(512, 0, 0), 512, 0)),
                ..huge.clone()
            },
            Outlook::Base,
        ),
        (
            "one page of surplus",
            Server {
                pool: known(surplus(pool(512, 0, 0), 1, 0)),
                ..huge.clone()
            },
            Outlook::Base,
        ),
        (
            "one page of surplus, which may be found again",
            Server {
                pool: known(surplus(pool(512, 0, 0), 1, 1)),
                ..huge.clone()
            },
            Outlook::Unknown,
        ),
        (
            "overcommit only",
            Server {
                pool: known(surplus(pool(512, 0, 0), 512, 512)),
                ..huge.clone()
            },
            Outlook::Unknown,
        ),
        (
            "overcommit one page short",
            Server {
                pool: known(surplus(pool(512, 0, 0), 512, 511)),
                ..huge.clone()
            },
            Outlook::Base,
        ),
        (
            "others hold all surplus pages that are allowed",
            Server {
                pool: known(surplus(pool(512, 0, 0), 512, 512)),
                ..base.clone()
            },
            Outlook::Base,
        ),
        (
            "base now, the pool has grown",
            Server {
                pool: known(pool(512, 512, 0)),
                ..base.clone()
            },
            Outlook::Hugetlb,
        ),
        (
            "base now, one page promised",
            Server {
                pool: known(pool(512, 512, 1)),
                ..base.clone()
            },
            Outlook::Base,
        ),
        (
            "sysv",
            Server {
                sysv: true,
                pool: known(pool(512, 512, 0)),
                ..base.clone()
            },
            Outlook::Base,
        ),
        (
            "unsupported",
            Server {
                pool: PoolFact::Unsupported(vec![]),
                ..base.clone()
            },
            Outlook::Base,
        ),
        (
            "an unknown pool",
            Server {
                pool: PoolFact::Unknown,
                ..base.clone()
            },
            Outlook::Unknown,
        ),
        (
            "no segment",
            Server {
                landing: None,
                ..base.clone()
            },
            Outlook::Unknown,
        ),
        (
            "no counter of promises",
            Server {
                pool: known(Pool {
                    resv: None,
                    ..pool(512, 512, 0)
                }),
                ..base.clone()
            },
            Outlook::Unknown,
        ),
        (
            "a cgroup filled by this server alone",
            Server {
                limits: reservation(&[(GIB, GIB)]),
                ..huge.clone()
            },
            Outlook::Hugetlb,
        ),
        (
            "a cgroup one byte too low",
            Server {
                limits: reservation(&[(GIB - 1, GIB)]),
                ..huge.clone()
            },
            Outlook::Base,
        ),
        (
            "a cgroup that others fill beside it",
            Server {
                limits: reservation(&[(GIB + 99, GIB + 100)]),
                ..huge.clone()
            },
            Outlook::Base,
        ),
        (
            "a cgroup closed since",
            Server {
                limits: reservation(&[(0, GIB)]),
                ..huge.clone()
            },
            Outlook::Base,
        ),
        (
            "two levels, a server charged before it was moved",
            Server {
                limits: Some(two_levels),
                ..huge.clone()
            },
            Outlook::Base,
        ),
        (
            "a fault-time limit is not met at the start",
            Server {
                limits: fault(&[(GIB - 1, 0)]),
                ..huge.clone()
            },
            Outlook::Hugetlb,
        ),
        (
            "levels that can't be seen",
            Server {
                limits: hidden(),
                ..huge.clone()
            },
            Outlook::Unknown,
        ),
        (
            "levels that can't be seen, but one that refuses",
            Server {
                limits: reservation(&[(0, 0)]).map(|limits| CgroupLimits {
                    hidden_levels: true,
                    ..limits
                }),
                ..huge.clone()
            },
            Outlook::Base,
        ),
        (
            "levels that can't be seen, but no pool",
            Server {
                limits: hidden(),
                ..base.clone()
            },
            Outlook::Base,
        ),
        (
            "limits that could not be read",
            Server {
                limits: None,
                ..huge
            },
            Outlook::Unknown,
        ),
    ];
    for (what, server, outlook) in cases {
        let with = |huge_pages| {
            Server {
                huge_pages,
                ..server.clone()
            }
            .status()
            .forecast
            .outlook
        };
        assert_eq!(with(HugePages::Try), outlook, "{what}");
        let on = if outlook == Outlook::Base {
            Outlook::Fails
        } else {
            outlook
        };
        assert_eq!(with(HugePages::On), on, "{what}");
        assert_eq!(with(HugePages::Off), Outlook::Base, "{what}");
    }
}

#[test]
fn recommended_numbers() {
    let base = Server::in_base_pages();
    let off = Server {
        huge_pages: HugePages::Off,
        ..base.clone()
    };
    let cases = [
        ("what it has", Server::default(), Some(512)),
        ("what it needs", base.clone(), Some(512)),
        (
            "beside others",
            Server {
                pool: known(pool(700, 400, 100)),
                ..base.clone()
            },
            Some(400 + 512),
        ),
        (
            "off: the pool as it is",
            Server {
                pool: known(pool(700, 400, 100)),
                ..off.clone()
            },
            Some(700),
        ),
        ("off: nobody", off, Some(0)),
        (
            "nothing for what the host can't hold",
            Server {
                size: 15 * GIB,
                ..base.clone()
            },
            Some(0),
        ),
        (
            "all that it holds",
            Server {
                size: 6553 * 2 * MIB,
                ..base.clone()
            },
            Some(6553),
        ),
        (
            "beside 4 GB in other pools",
            Server {
                size: 9 * GIB,
                hugetlb: Some(4 * GIB),
                ..base.clone()
            },
            Some(0),
        ),
        (
            "its own pool is not elsewhere",
            Server {
                size: 6553 * 2 * MIB,
                hugetlb: Some(200 * MIB),
                pool: known(pool(100, 100, 0)),
                ..base.clone()
            },
            Some(6553),
        ),
        (
            "unsupported",
            Server {
                pool: PoolFact::Unsupported(vec![]),
                ..base.clone()
            },
            None,
        ),
        (
            "an unknown pool",
            Server {
                pool: PoolFact::Unknown,
                ..base.clone()
            },
            None,
        ),
        (
            "no segment",
            Server {
                landing: None,
                ..base
            },
            None,
        ),
    ];
    for (what, server, recommended) in cases {
        assert_eq!(
            server.status().recommended,
            recommended.map(Pages),
            "{what}"
        );
    }
}

#[test]
fn landings() {
    let huge = Some(2 * MIB);
    for (what, page, resident, pmd_mapped, pmd_size, landing) in [
        ("hugetlb of 2 MB", 2 * MIB, 0, 0, huge, Landing::Hugetlb),
        ("hugetlb of 64 kB", 64 * KIB, 0, 0, huge, Landing::Hugetlb),
        ("nothing touched", 4 * KIB, 0, 0, huge, Landing::Base),
        ("no THP", 4 * KIB, GIB, 0, huge, Landing::Base),
        ("all THP", 4 * KIB, GIB, GIB, huge, Landing::Thp),
        (
            "all but the ends",
            4 * KIB,
            GIB,
            GIB - 4 * MIB + 4 * KIB,
            huge,
            Landing::Thp,
        ),
        (
            "two huge pages less",
            4 * KIB,
            GIB,
            GIB - 4 * MIB,
            huge,
            Landing::PartialThp,
        ),
        (
            "all THP, of a size that the kernel does not tell",
            4 * KIB,
            GIB,
            GIB,
            None,
            Landing::Thp,
        ),
        (
            "a page less, of a size that the kernel does not tell",
            4 * KIB,
            GIB,
            GIB - 4 * KIB,
            None,
            Landing::PartialThp,
        ),
        (
            "counters read while they moved",
            4 * KIB,
            GIB,
            2 * GIB,
            huge,
            Landing::Thp,
        ),
    ] {
        let line = "7f0000000000-7f0040000000 rw-s 00000000 00:01 1028 /dev/zero (deleted)";
        let mapping = maps::Mapping {
            page_size: PageSize::new(page),
            ..maps::parse(line).unwrap()
        };
        let seen = TransparentPages {
            resident: Bytes(resident),
            pmd_mapped: Bytes(pmd_mapped),
            size: pmd_size.and_then(PageSize::new),
            ..TransparentPages::default()
        };
        let found = landing_of(&mapping, page_size(4 * KIB), true, Some(&seen));
        assert_eq!(found, landing, "{what}");
        let unknown = maps::Mapping {
            page_size: None,
            ..mapping.clone()
        };
        assert_eq!(
            landing_of(&unknown, page_size(4 * KIB), true, Some(&seen)),
            Landing::Unknown,
            "{what}"
        );
        let in_pool = page != 4 * KIB;
        for (may_be_thp, unread) in [(false, Landing::Base), (true, Landing::Unknown)] {
            let expected = if in_pool { Landing::Hugetlb } else { unread };
            let found = landing_of(&mapping, page_size(4 * KIB), may_be_thp, None);
            assert_eq!(found, expected, "{what}, which nobody has read");
        }
    }
}

#[test]
fn a_collapse_that_was_stopped_is_a_part() {
    // The postmaster has touched nothing but what was collapsed.
    let of = |most_resident: u64, of_host: Option<u64>| TransparentPages {
        resident: Bytes(50 * MIB),
        pmd_mapped: Bytes(48 * MIB),
        most_resident: Bytes(most_resident),
        of_host: of_host.map(Bytes),
        size: PageSize::new(2 * MIB),
    };
    for (what, seen, landing) in [
        (
            "sessions have the rest",
            of(400 * MIB, Some(48 * MIB)),
            Landing::PartialThp,
        ),
        (
            "nobody has touched the rest",
            of(52 * MIB, Some(48 * MIB)),
            Landing::Thp,
        ),
        (
            "the kernel makes more of them",
            of(400 * MIB, Some(390 * MIB)),
            Landing::Thp,
        ),
        (
            "others share more memory than the segment",
            of(GIB, Some(470 * MIB)),
            Landing::Thp,
        ),
        (
            "the kernel does not count them",
            of(400 * MIB, None),
            Landing::Thp,
        ),
    ] {
        assert_eq!(landing_seen(&seen, Bytes(512 * MIB)), landing, "{what}");
    }
}

#[test]
fn a_note_says_what_an_unknown_outlook_depends_on() {
    let notes = |pool: Pool| {
        Server {
            pool: known(pool),
            ..Server::default()
        }
        .status()
        .notes_on_outlook()
        .collect::<Vec<_>>()
    };
    let about = |start: &str| {
        format!(
            "whether {start} gets huge pages depends on surplus pages (nr_overcommit_hugepages), which the kernel may be unable \
             to provide: 511 of the 512 pages of 2 MB needed are guaranteed"
        )
    };
    assert_eq!(
        notes(surplus(pool(512, 0, 0), 1, 1)),
        [about("a restart"), about("a restart after a crash")]
    );
    assert!(
        notes(surplus(pool(512, 0, 0), 1, 0)).is_empty(),
        "base pages, for certain"
    );
    assert!(notes(pool(512, 0, 0)).is_empty(), "huge pages, for certain");
    assert!(
        notes(Pool {
            resv: None,
            ..pool(512, 512, 0)
        })
        .is_empty(),
        "the counter that was not read has its note"
    );
}

/// Of the starts with and without options of the command line one stands for both where they come to the same.
#[test]
fn one_start_for_both() {
    let facts = Server {
        pool: known(pool(1024, 1024, 512)),
        ..Server::default()
    }
    .facts();
    let start = |megabytes: u64, max_connections| {
        let shared_memory = Bytes(megabytes * MIB);
        let demand = Demand {
            requested: facts.requested,
            max_connections,
            shared_memory,
        };
        Pending::Changed(demand, facts.pool_state.clone())
    };
    let gigantic = PoolState {
        huge_page_size: Some(page_size(GIB)),
        pool: known(Pool {
            page_size: page_size(GIB),
            ..pool(9, 9, 0)
        }),
        ..facts.pool_state.clone()
    };
    let Pending::Changed(demand, _) = start(1200, 100) else {
        unreachable!()
    };
    for (what, one, other, expected) in [
        (
            "the other needs more",
            start(1200, 100),
            start(1400, 100),
            Some(start(1400, 100)),
        ),
        (
            "the one needs more",
            start(1400, 100),
            start(1200, 100),
            Some(start(1400, 100)),
        ),
        (
            "both need the same",
            start(1200, 100),
            start(1200, 200),
            Some(start(1200, 100)),
        ),
        ("only one lands", start(1200, 100), start(9000, 100), None),
        (
            "in pages of another size",
            start(1200, 100),
            Pending::Changed(demand, gigantic),
            None,
        ),
        (
            "one is refused",
            start(1200, 100),
            Pending::Refused(String::new()),
            None,
        ),
        (
            "one is unchanged",
            Pending::Unchanged,
            start(1200, 100),
            Some(start(1200, 100)),
        ),
    ] {
        assert_eq!(
            facts.current_start().start_of_both([one, other]),
            expected,
            "{what}"
        );
    }
}
