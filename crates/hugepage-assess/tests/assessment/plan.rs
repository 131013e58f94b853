//! Hints name every obstacle in order, and help: the assessment after their steps is better than before.

use hugepage_assess::advice;
use hugepage_assess::advice::plan::{Plan, Step};
use hugepage_assess::assessment::{Finding, Outlook, Severity, Status};
use hugepage_assess::model::{Demand, Facts, HugePages, PagesOfStrangers, Pending, PoolFact};
use hugepage_facts::{Cause, Landing, PageTables, PoolHolder};
use hugepage_kernel::cgroups::cgroup::{CgroupLimit, CgroupLimits};
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::{Bytes, Pages};

use super::{GIB, MIB, Server, effect, fault, known, limit, pool, reservation};

fn hint(server: Server) -> Option<String> {
    advice::hint(&server.status())
}

/// `server` with a configuration on disk that asks for `size` with `huge_pages`.
fn pending(server: Server, huge_pages: HugePages, size: u64) -> Facts {
    let mut facts = server.facts();
    let requested = hugepage_assess::model::Requested {
        huge_pages,
        ..facts.requested
    };
    let demand = Demand {
        requested,
        max_connections: 100,
        shared_memory: Bytes(size),
    };
    facts.pending = Pending::Changed(demand, facts.pool_state.clone());
    facts
}

#[test]
fn every_obstacle_in_order() {
    let base = Server::in_base_pages();
    let closed = CgroupLimits {
        fault: vec![limit(MIB, 0)],
        reservation: vec![limit(0, 0), limit(GIB / 2, GIB / 4)],
        ..CgroupLimits::default()
    };
    for (what, server, expected) in [
        (
            "an empty pool and rsvd.max = 0",
            Server {
                limits: reservation(&[(0, 0)]),
                ..base.clone()
            },
            Some(seen!(
                "Set /sys/fs/cgroup/limit_0 to at least 1073741824 bytes, run \"sysctl -w vm.nr_hugepages=512",
                " and restart \
                  the server."
            )),
        ),
        (
            "three limits",
            Server {
                limits: Some(closed),
                ..base.clone()
            },
            Some(seen!(
                "Set /sys/fs/cgroup/limit_1048576 to at least 1073741824 bytes, set /sys/fs/cgroup/limit_0 to at least \
                  1073741824 bytes, set /sys/fs/cgroup/limit_536870912 to at least 1342177280 bytes, run \"sysctl -w \
                  vm.nr_hugepages=512",
                " and restart the server."
            )),
        ),
        (
            "the pool was raised since, and the fault limit is below the segment",
            Server {
                pool: known(pool(512, 512, 0)),
                limits: fault(&[(GIB / 2, 0)]),
                ..base.clone()
            },
            Some(
                "Set /sys/fs/cgroup/limit_536870912 to at least 1073741824 bytes and restart the server.",
            ),
        ),
        (
            "an unknown pool",
            Server {
                pool: PoolFact::Unknown,
                ..base
            },
            Some("Read the notes, which name what could not be determined."),
        ),
    ] {
        assert_eq!(hint(server).as_deref(), expected, "{what}");
    }
}

/// Row 12: no new surplus page where all that are allowed are another's.
/// Also whoever takes one row alone is not harmed: below a limit of a cgroup huge pages kill a server. What an option sets, no
/// statement changes.
#[test]
fn a_setting_waits_for_the_limit() {
    let off = Server {
        huge_pages: HugePages::Off,
        pool: known(pool(600, 600, 0)),
        ..Server::in_base_pages()
    };
    let limited = Server {
        limits: fault(&[(GIB / 2, 0)]),
        ..off.clone()
    };
    let rows = |facts: Facts| -> Vec<_> {
        let status = Status::assess(facts);
        let rows = advice::recommendations(&status, &PageTables::default()).into_iter();
        rows.map(|row| (row.setting, row.command)).collect()
    };
    let raise = "/sys/fs/cgroup/limit_536870912";
    assert_eq!(
        rows(limited.facts()),
        [(raise.to_owned(), Some(format!("echo 1073741824 > {raise}")))]
    );
    let statement = "ALTER SYSTEM SET huge_pages = 'try';".to_owned();
    for (is_option, command) in [(false, Some(statement)), (true, None)] {
        let facts = Facts {
            huge_pages_is_option: is_option,
            ..off.clone().facts()
        };
        assert!(rows(facts).contains(&("huge_pages".to_owned(), command)));
    }
}

#[test]
fn surplus_pages_of_another() {
    let full = Pool {
        surplus: Some(Pages(512)),
        overcommit: Some(Pages(512)),
        ..pool(512, 0, 0)
    };
    let status = Server {
        pool: known(full),
        ..Server::in_base_pages()
    }
    .status();
    assert_eq!(
        (status.forecast.outlook, status.cause),
        (Outlook::Base, Some(Cause::PoolTaken))
    );
    assert_eq!(
        advice::hint(&status).as_deref(),
        Some(seen!(
            "Run \"sysctl -w vm.nr_hugepages=1024",
            " and restart the server."
        ))
    );
}

/// A node without the pages that the manifest of its pod asks for does not get this pod again.
#[test]
fn a_pool_for_the_limit_of_a_pod() {
    let limited = |path: &str, pages: u64| {
        let limit = CgroupLimit {
            path: path.to_owned(),
            ..limit(pages * 2 * MIB, GIB)
        };
        let server = Server {
            pool: known(pool(2048, 1536, 0)),
            limits: Some(CgroupLimits {
                reservation: vec![limit],
                ..CgroupLimits::default()
            }),
            ..Server::default()
        };
        server.status()
    };
    for (path, pages, needed) in [
        ("hugepages-2Mi", 512, Some(512)),
        ("hugepages-2Mi", 1024, Some(1024)),
        ("hugepages-2Mi", 2000, None),
        (
            "/sys/fs/cgroup/system.slice/hugetlb.2MB.max",
            1025,
            Some(512),
        ),
    ] {
        let status = limited(path, pages);
        let hint = advice::hint(&status).unwrap_or_default();
        let command = needed.map(|pages| format!("vm.nr_hugepages={pages}\""));
        assert_eq!(
            status.severity_of("pool_wasted") > Severity::Ok,
            needed.is_some(),
            "{path}: {pages}"
        );
        assert!(hint.contains(&command.unwrap_or_default()), "{hint}");
    }
}

/// Row 20: the extension sees no other server.
#[test]
fn a_pool_for_servers_that_are_not_seen() {
    let raised = Server {
        pool: known(pool(1024, 512, 0)),
        ..Server::default()
    };
    let seen = raised.clone().status();
    assert_eq!(
        seen.verdict(),
        (
            Severity::Warning,
            &Finding::PoolWasted { needed: Pages(512) }
        )
    );
    // Whoever can't be seen may need them, but a host that lacks this memory needs it now.
    for (available, severity) in [(GIB - 1, Severity::Warning), (GIB, Severity::Notice)] {
        let starved = Server {
            sees_others: false,
            available: Some(available),
            ..raised.clone()
        }
        .status();
        assert_eq!(starved.severity_of("pool_wasted"), severity, "{available}");
        let message =
            advice::message::of_finding(&starved, &Finding::PoolWasted { needed: Pages(512) });
        let is_said = message.contains("of memory is available, and 0 bytes of swap is used.");
        assert_eq!(is_said, severity == Severity::Warning, "{message}");
    }
    let status = Server {
        sees_others: false,
        ..raised
    }
    .status();
    assert_eq!(status.recommended, Some(Pages(1024)));
    assert_eq!(
        status.verdict(),
        (
            Severity::Notice,
            &Finding::PoolWasted { needed: Pages(512) }
        )
    );
    assert_eq!(
        advice::message(&status),
        "The pool has 1024 pages of 2 MB, this server and current users of the pool need 512, and 1 GB is unused; \
         whether other servers or next starts need it is unknown."
    );
    assert_eq!(advice::hint(&status), None);
    // Who has enlarged it for a configuration that is not running yet is not told to take the pages away again.
    let next_starts: [fn(&mut Facts); 2] = [
        |facts| facts.pending = Pending::Unknown,
        |facts| facts.others_may_ask_for_more = true,
    ];
    for change in next_starts {
        let mut facts = seen.facts.clone();
        change(&mut facts);
        let status = Status::assess(facts);
        assert_eq!(status.severity_of("pool_wasted"), Severity::Notice);
        let wasted = Finding::PoolWasted { needed: Pages(512) };
        assert_eq!(advice::message::hint_of_finding(&status, &wasted), None);
        assert!(advice::message::of_finding(&status, &wasted).ends_with("is unknown."));
    }
    // No command leaves no page.
    let off = Server {
        huge_pages: HugePages::Off,
        pool: known(pool(512, 512, 0)),
        ..Server::in_base_pages()
    };
    assert_eq!(
        hint(off).as_deref(),
        Some(
            "Reduce the pool, unless a stopped server needs these pages, or one in base pages is to have them."
        )
    );
}

/// Whatever its files ask for by now, what runs needs these pages.
#[test]
fn base_pages_beside_files_that_have_changed() {
    let short = Server {
        pool: known(pool(1, 1, 0)),
        ..Server::in_base_pages()
    }
    .status();
    let status = Status::assess(Facts {
        pending: Pending::Unknown,
        ..short.facts
    });
    assert_eq!(status.forecast.outlook, Outlook::Unknown);
    assert_eq!(
        advice::hint(&status).as_deref(),
        Some(seen!(
            "Run \"sysctl -w vm.nr_hugepages=512",
            " and restart the server."
        ))
    );
}

/// What is needed now and a pool for more on disk are told apart, and the recommended number counts what fits.
#[test]
fn more_on_disk_than_the_host_holds() {
    let short = Server {
        pool: known(pool(1, 1, 0)),
        ..Server::in_base_pages()
    };
    let mut facts = pending(short, HugePages::Try, 1000 * GIB);
    if let Pending::Changed(demand, _) = &mut facts.pending {
        demand.requested.shared_buffers = Bytes(999 * GIB);
    }
    let status = Status::assess(facts);
    let message = advice::message(&status);
    let parts = "512 are needed (511 missing), and with the configuration on disk a pool of 512000 pages exceeds";
    assert!(message.contains(parts), "{message}");
    assert_eq!(status.recommended, Some(Pages(512)));
    let hint = advice::hint(&status).unwrap();
    assert!(
        hint.contains(" The number counts all servers seen here, after that reduction;"),
        "{hint}"
    );
}

/// Row 25: off until the next start.
#[test]
fn off_now_and_try_on_disk() {
    let off = Server {
        huge_pages: HugePages::Off,
        pool: known(pool(512, 512, 0)),
        ..Server::in_base_pages()
    };
    let cases = [
        (
            off.clone(),
            "Shared memory (1 GB) is in 4 kB pages because huge_pages = off; a restart with the configuration on disk would \
             land in huge pages.",
            "Restart the server.",
        ),
        (
            Server {
                pool: known(pool(0, 0, 0)),
                ..off
            },
            "Shared memory (1 GB) is in 4 kB pages because huge_pages = off; the configuration on disk asks for huge pages, \
             but only 0 of the 512 pages of 2 MB needed are guaranteed.",
            seen!(
                "Run \"sysctl -w vm.nr_hugepages=512",
                " and restart the server."
            ),
        ),
    ];
    for (server, message, hint) in cases {
        let status = Status::assess(pending(server, HugePages::Try, GIB));
        assert_eq!(
            status.verdict(),
            (Severity::Notice, &Finding::BasePages(Cause::Disabled))
        );
        assert_eq!(advice::message(&status), message);
        assert_eq!(advice::hint(&status).as_deref(), Some(hint));
    }
}

#[test]
fn of_the_configuration_on_disk() {
    let larger = Status::assess(pending(Server::default(), HugePages::Try, 2 * GIB));
    assert_eq!(
        advice::hint(&larger).as_deref(),
        Some(seen!("Run \"sysctl -w vm.nr_hugepages=1024", "."))
    );
    let limited = Server {
        limits: reservation(&[(GIB, GIB)]),
        ..Server::default()
    };
    assert_eq!(
        advice::hint(&Status::assess(pending(limited, HugePages::Try, 2 * GIB))).as_deref(),
        Some(seen!(
            "Set /sys/fs/cgroup/limit_1073741824 to at least 2147483648 bytes and run \"sysctl -w vm.nr_hugepages=1024",
            "."
        ))
    );
    let off = Status::assess(pending(Server::default(), HugePages::Off, GIB));
    assert_eq!(
        advice::hint(&off).as_deref(),
        Some("Set huge_pages = try in the configuration, or do not restart the server.")
    );
}

/// The number of pages that a sentence or command sets.
fn pages_set(text: &str) -> Option<u64> {
    if text.contains("/sys/devices/system/node/") {
        return None;
    }
    let (_, rest) = text
        .split_once("nr_hugepages=")
        .or_else(|| text.split_once("echo "))?;
    rest.split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

/// Whatever the kernel says: no pages below those in use or promised, none that the host can't hold, and a hint is better
/// than none.
pub fn check(status: &Status) {
    let text = advice::hint(status).unwrap_or_default();
    if let Some(pages) = pages_set(&text) {
        let in_use = status
            .facts
            .pool_state
            .pool
            .known()
            .and_then(|pool| pool.in_use())
            .unwrap_or_default();
        assert!(Pages(pages) >= in_use, "{text} {status:?}");
        assert!(
            Pages(pages) <= status.capacity.unwrap().most,
            "{text} {status:?}"
        );
    }
    if let Some(recommended) = status.recommended {
        let in_use = status
            .facts
            .pool_state
            .pool
            .known()
            .and_then(|pool| pool.in_use())
            .unwrap_or_default();
        assert!(
            recommended >= in_use && recommended <= status.capacity.unwrap().most,
            "{status:?}"
        );
    }
    if let Some(plan) =
        Plan::of_finding(status, status.verdict().1).filter(|_| is_of_a_kernel(&status.facts))
    {
        let after = effect::after(&plan, &status.facts);
        assert!(
            effect::gravity(&after) < effect::gravity(status),
            "{plan:?} {after:?}"
        );
        let all_seen = status
            .facts
            .pool_state
            .limits
            .as_ref()
            .is_some_and(|limits| !limits.hidden_levels);
        if status.facts.landing() == Landing::Base
            && all_seen
            && plan.steps.contains(&Step::Restart)
        {
            assert_eq!(
                after.facts.landing(),
                Landing::Hugetlb,
                "{plan:?} {after:?}"
            );
        }
    }
}

/// Whether a kernel can have these counters: none exceeds what it is a part of, and no sum overflows.
fn is_of_a_kernel(facts: &Facts) -> bool {
    let is_possible = |bytes: Bytes| bytes.0 < 1 << 60;
    let pool = facts.pool_state.pool.known().is_none_or(|pool| {
        pool.nr.0 < 1 << 24
            && pool.free <= pool.nr
            && pool.resv.is_none_or(|resv| resv <= pool.free)
            && pool.surplus.is_none_or(|surplus| surplus <= pool.nr)
    });
    pool && facts.pool_state.limits.iter().all(|limits| {
        let levels = limits.fault.iter().chain(&limits.reservation);
        let numbers = levels.flat_map(|level| [Some(level.usage), level.promised]);
        numbers.flatten().all(is_possible)
    })
}

#[test]
fn facts_of_pending_sizes() {
    for size in [1, GIB / 2, GIB, 2 * GIB, 15 * GIB, 40 * GIB] {
        for huge_pages in [HugePages::Off, HugePages::Try, HugePages::On] {
            for server in [Server::default(), Server::in_base_pages()] {
                check(&Status::assess(pending(server, huge_pages, size)));
            }
        }
    }
}

#[test]
fn a_page_size_that_the_machine_lacks() {
    for (pages, size) in [(512, GIB), (2000, GIB), (50, 100 * MIB), (2000, 100 * MIB)] {
        let server = Server {
            pool: PoolFact::Unsupported(vec![super::page_size(2 * MIB)]),
            page_size: Some(super::page_size(16 * MIB)),
            size,
            sees_others: false,
            ..Server::in_base_pages()
        };
        let mut facts = server.facts();
        facts.requested.huge_page_size = Some(super::page_size(16 * MIB));
        let meminfo = &mut facts.meminfo;
        meminfo.huge_page_size = Some(super::page_size(2 * MIB));
        (
            meminfo.huge_pages_total,
            meminfo.huge_pages_free,
            meminfo.huge_pages_rsvd,
        ) = (Some(Pages(pages)), Some(Pages(pages)), Some(Pages(0)));
        let status = Status::assess(facts);
        let hint = "Set huge_page_size = 0, the kernel's default size.";
        assert_eq!(advice::hint(&status).as_deref(), Some(hint), "{pages}");
    }
}

/// Pages of strangers are no reason for a larger pool, whoever prints the number; the hint says that they have to be free first.
#[test]
fn pages_of_strangers() {
    let largest = PoolHolder {
        name: "python3".to_owned(),
        user: "4711".to_owned(),
        processes: 1,
        memory: Bytes(GIB),
        pages: Some(Pages(100)),
        is_bound: false,
        counts: false,
    };
    for (nr, recommended, steps) in [
        (
            100,
            512,
            seen!(
                "Free the 100 huge pages that python3 (4711) holds, run \"sysctl -w vm.nr_hugepages=512",
                " and restart the server."
            ),
        ),
        (
            600,
            600,
            "Free 12 of the 100 huge pages that python3 (4711) holds and restart the server.",
        ),
        (700, 700, "Restart the server."),
    ] {
        let free = nr - 100;
        let server = Server {
            pool: known(pool(nr, free, 0)),
            ..Server::in_base_pages()
        };
        let strangers = PagesOfStrangers {
            pages: Pages(100),
            largest: Some(largest.clone()),
            ..PagesOfStrangers::default()
        };
        let status = Status::assess(Facts {
            strangers,
            ..server.facts()
        });
        assert_eq!(status.recommended, Some(Pages(recommended)));
        assert_eq!(advice::hint(&status).as_deref(), Some(steps), "{nr}");
    }
}
