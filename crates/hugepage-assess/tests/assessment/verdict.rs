//! The rules of the verdict, each at its border, and which of several speaks.

use hugepage_assess::assessment::{Finding, Severity};
use hugepage_assess::model::{HugePages, PoolFact};
use hugepage_facts::{Cause, Landing};
use hugepage_kernel::Pages;
use hugepage_kernel::memory::pool::Pool;

use super::{GIB, KIB, MIB, Server, fault, hidden, known, pool, reservation};

fn verdict(server: Server) -> (Severity, Finding) {
    let status = server.status();
    let (severity, finding) = status.verdict();
    (severity, finding.clone())
}

fn table<const N: usize>(cases: [(&str, Server, Severity, Finding); N]) {
    for (what, server, severity, finding) in cases {
        assert_eq!(verdict(server), (severity, finding), "{what}");
    }
}

/// All its pages are surplus: a restart loses them.
pub(super) fn on_surplus() -> Server {
    Server {
        pool: known(Pool {
            surplus: Some(Pages(512)),
            ..pool(512, 0, 0)
        }),
        ..Server::default()
    }
}

#[test]
fn as_requested_and_kept() {
    let ok = Server::default();
    table([
        ("try", ok.clone(), Severity::Ok, Finding::AsRequested),
        (
            "on",
            Server {
                huge_pages: HugePages::On,
                ..ok.clone()
            },
            Severity::Ok,
            Finding::AsRequested,
        ),
        (
            "small",
            Server {
                size: 2 * MIB,
                pool: known(pool(1, 0, 0)),
                ..ok
            },
            Severity::Ok,
            Finding::AsRequested,
        ),
    ]);
}

#[test]
fn base_pages_by_their_size_and_by_choice() {
    let base = Server::in_base_pages();
    let empty = Finding::BasePages(Cause::PoolEmpty);
    let off = Finding::BasePages(Cause::Disabled);
    table([
        ("1 GB", base.clone(), Severity::Warning, empty.clone()),
        (
            "one page less",
            Server {
                size: GIB - 4 * KIB,
                ..base.clone()
            },
            Severity::Notice,
            empty.clone(),
        ),
        (
            "1 TB",
            Server {
                size: 1024 * GIB,
                ..base.clone()
            },
            Severity::Warning,
            empty.clone(),
        ),
        (
            "off",
            Server {
                huge_pages: HugePages::Off,
                size: 1024 * GIB,
                ..base.clone()
            },
            Severity::Notice,
            off,
        ),
        (
            "partly in THP",
            Server {
                landing: Some(Landing::PartialThp),
                ..base.clone()
            },
            Severity::Warning,
            empty,
        ),
        (
            "in THP",
            Server {
                landing: Some(Landing::Thp),
                ..base.clone()
            },
            Severity::Notice,
            Finding::TransparentHugePages,
        ),
        (
            "in THP, off",
            Server {
                landing: Some(Landing::Thp),
                huge_pages: HugePages::Off,
                ..base
            },
            Severity::Notice,
            Finding::TransparentHugePages,
        ),
    ]);
}

#[test]
fn what_can_not_be_known() {
    let ok = Server::default();
    let overcommit = Pool {
        surplus: Some(Pages(512)),
        overcommit: Some(Pages(512)),
        ..pool(512, 0, 0)
    };
    table([
        (
            "no segment",
            Server {
                landing: None,
                ..ok.clone()
            },
            Severity::Notice,
            Finding::LandingUnknown,
        ),
        (
            "an unknown landing",
            Server {
                landing: Some(Landing::Unknown),
                ..ok.clone()
            },
            Severity::Notice,
            Finding::LandingUnknown,
        ),
        (
            "hidden limits",
            Server {
                limits: hidden(),
                ..ok.clone()
            },
            Severity::Notice,
            Finding::OutlookUnknown,
        ),
        (
            "unread limits",
            Server {
                limits: None,
                ..ok.clone()
            },
            Severity::Notice,
            Finding::OutlookUnknown,
        ),
        (
            "overcommit only",
            Server {
                pool: known(overcommit),
                ..ok.clone()
            },
            Severity::Notice,
            Finding::OutlookUnknown,
        ),
        (
            "an unknown pool",
            Server {
                pool: PoolFact::Unknown,
                ..ok
            },
            Severity::Notice,
            Finding::OutlookUnknown,
        ),
    ]);
}

#[test]
fn a_restart_that_loses() {
    let small = Server {
        size: 2 * MIB,
        pool: known(Pool {
            surplus: Some(Pages(1)),
            ..pool(1, 0, 0)
        }),
        ..Server::default()
    };
    table([
        (
            "surplus only",
            on_surplus(),
            Severity::Warning,
            Finding::RestartLoses,
        ),
        (
            "under 1 GB as well",
            small,
            Severity::Warning,
            Finding::RestartLoses,
        ),
        (
            "on: it would fail",
            Server {
                huge_pages: HugePages::On,
                ..on_surplus()
            },
            Severity::Critical,
            Finding::RestartFails,
        ),
        (
            "a cgroup closed since",
            Server {
                limits: reservation(&[(0, GIB)]),
                ..Server::default()
            },
            Severity::Warning,
            Finding::RestartLoses,
        ),
    ]);
}

#[test]
fn page_tables_in_hundredths_of_memory() {
    let with = |page_tables| Server {
        memory: 100 * GIB,
        page_tables,
        ..Server::default()
    };
    table([
        ("5%", with(5 * GIB), Severity::Ok, Finding::AsRequested),
        (
            "over 5%",
            with(5 * GIB + 1),
            Severity::Warning,
            Finding::PageTables,
        ),
        (
            "10%",
            with(10 * GIB),
            Severity::Warning,
            Finding::PageTables,
        ),
        (
            "over 10%",
            with(10 * GIB + 1),
            Severity::Critical,
            Finding::PageTables,
        ),
        // 5% of 59 bytes are 2.95.
        (
            "no whole number",
            Server {
                memory: 59,
                page_tables: 3,
                ..Server::default()
            },
            Severity::Warning,
            Finding::PageTables,
        ),
        (
            "no whole number, under",
            Server {
                memory: 59,
                page_tables: 2,
                ..Server::default()
            },
            Severity::Ok,
            Finding::AsRequested,
        ),
    ]);
}

#[test]
fn a_pool_larger_than_anybody_needs() {
    let with = |pool| Server {
        pool: known(pool),
        ..Server::default()
    };
    let wasted = |needed| Finding::PoolWasted {
        needed: Pages(needed),
    };
    let off = Server {
        huge_pages: HugePages::Off,
        ..Server::in_base_pages()
    };
    table([
        (
            "twice",
            with(pool(1024, 512, 0)),
            Severity::Warning,
            wasted(512),
        ),
        (
            "one page less",
            with(pool(1023, 511, 0)),
            Severity::Ok,
            Finding::AsRequested,
        ),
        (
            "a tenth of memory",
            Server {
                memory: 8 * GIB,
                ..with(pool(922, 410, 0))
            },
            Severity::Warning,
            wasted(512),
        ),
        (
            "one page less of it",
            Server {
                memory: 8 * GIB,
                ..with(pool(921, 409, 0))
            },
            Severity::Ok,
            Finding::AsRequested,
        ),
        (
            "twice with others",
            with(pool(1224, 1224, 612)),
            Severity::Warning,
            wasted(612),
        ),
        (
            "one page less with others",
            with(pool(1223, 1223, 612)),
            Severity::Ok,
            Finding::AsRequested,
        ),
        (
            "surplus pages are nobody's waste",
            with(Pool {
                surplus: Some(Pages(1)),
                ..pool(1024, 512, 0)
            }),
            Severity::Ok,
            Finding::AsRequested,
        ),
        (
            "off, and a pool",
            Server {
                pool: known(pool(1, 1, 0)),
                ..off.clone()
            },
            Severity::Warning,
            wasted(0),
        ),
        (
            "off, and no pool",
            off,
            Severity::Notice,
            Finding::BasePages(Cause::Disabled),
        ),
    ]);
}

#[test]
fn a_cgroup_below_the_segment() {
    let with = |limits: &[(u64, u64)]| Server {
        limits: fault(limits),
        ..Server::default()
    };
    let in_base_pages = Server {
        limits: fault(&[(0, 0)]),
        ..Server::in_base_pages()
    };
    table([
        (
            "at the segment",
            with(&[(GIB, 0)]),
            Severity::Ok,
            Finding::AsRequested,
        ),
        (
            "one byte below",
            with(&[(GIB - 1, 0)]),
            Severity::Critical,
            Finding::CgroupBelowSegment,
        ),
        (
            "on a level above",
            with(&[(8 * GIB, 0), (GIB - 1, 0)]),
            Severity::Critical,
            Finding::CgroupBelowSegment,
        ),
        (
            "in base pages",
            in_base_pages,
            Severity::Warning,
            Finding::BasePages(Cause::PoolEmpty),
        ),
    ]);
}

#[test]
fn the_gravest_speaks_and_among_equals_the_first() {
    let tables = |percent: u64, server: Server| Server {
        memory: 100 * GIB,
        page_tables: percent * GIB,
        ..server
    };
    let failing = Server {
        huge_pages: HugePages::On,
        ..on_surplus()
    };
    let small_base = Server {
        size: GIB / 2,
        pool: known(pool(1000, 1000, 999)),
        ..Server::in_base_pages()
    };
    table([
        (
            "of three critical",
            tables(
                11,
                Server {
                    limits: fault(&[(0, 0)]),
                    ..failing.clone()
                },
            ),
            Severity::Critical,
            Finding::CgroupBelowSegment,
        ),
        (
            "of two critical",
            tables(11, failing),
            Severity::Critical,
            Finding::RestartFails,
        ),
        (
            "critical over warning",
            tables(11, Server::in_base_pages()),
            Severity::Critical,
            Finding::PageTables,
        ),
        (
            "of two warnings",
            tables(6, Server::in_base_pages()),
            Severity::Warning,
            Finding::BasePages(Cause::PoolEmpty),
        ),
        (
            "of two other warnings",
            tables(6, on_surplus()),
            Severity::Warning,
            Finding::RestartLoses,
        ),
        (
            "page tables over waste",
            tables(
                6,
                Server {
                    pool: known(pool(1024, 512, 0)),
                    ..Server::default()
                },
            ),
            Severity::Warning,
            Finding::PageTables,
        ),
        (
            "warning over notice",
            tables(6, small_base.clone()),
            Severity::Warning,
            Finding::PageTables,
        ),
        (
            "notice alone",
            small_base,
            Severity::Notice,
            Finding::BasePages(Cause::PoolTaken),
        ),
    ]);
}

#[test]
fn all_findings_are_kept() {
    let server = Server {
        huge_pages: HugePages::On,
        limits: fault(&[(0, 0)]),
        memory: 100,
        page_tables: 11,
        ..on_surplus()
    };
    let findings: Vec<_> = server
        .status()
        .findings
        .into_iter()
        .map(|(_, finding)| finding)
        .collect();
    assert_eq!(
        findings,
        [
            Finding::CgroupBelowSegment,
            Finding::RestartFails,
            Finding::PageTables
        ]
    );
}
