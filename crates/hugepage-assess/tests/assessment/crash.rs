//! A restart after a crash keeps the running settings, and a restart takes those on disk: two forecasts.

use hugepage_assess::advice::{events, hint, message};
use hugepage_assess::assessment::{Finding, Outlook, Severity, Status, Threat};
use hugepage_assess::history::record::InstanceIdentity;
use hugepage_assess::history::{Event, Record};
use hugepage_assess::model::{
    CrashRecovery, Demand, Facts, HugePages, Pending, PoolState, Product, Requested,
};
use hugepage_facts::{Cause, Past};
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::{Bytes, Pages};

use super::verdict::on_surplus;
use super::{MIB, Server, known, pool};

/// The status with another size on disk.
fn with_on_disk(server: Server, megabytes: u64) -> Status {
    let facts = server.facts();
    let demand = Demand {
        requested: facts.requested,
        max_connections: 100,
        shared_memory: Bytes(megabytes * MIB),
    };
    let pool_state = PoolState {
        huge_page_size: facts.pool_state.huge_page_size,
        pool: facts.pool_state.pool.clone(),
        limits: facts.pool_state.limits.clone(),
        nodes: None,
        lock_limit: None,
        base_limits: Vec::new(),
    };
    Status::assess(Facts {
        pending: Pending::Changed(demand, pool_state),
        ..facts
    })
}

fn outlooks(status: &Status) -> (Outlook, Option<Outlook>) {
    (status.forecast.outlook, status.crash_outlook())
}

#[test]
fn refused_configuration_beside_a_pool_that_is_gone() {
    for (huge_pages, crash, severity) in [
        (HugePages::Try, Outlook::Base, Severity::Warning),
        (HugePages::On, Outlook::Fails, Severity::Critical),
    ] {
        let facts = Server {
            huge_pages,
            ..on_surplus()
        }
        .facts();
        let status = Status::assess(Facts {
            pending: Pending::Refused("FATAL:  no library".to_owned()),
            ..facts
        });
        assert_eq!(outlooks(&status), (Outlook::Fails, Some(crash)));
        assert_eq!(
            status.verdict(),
            (Severity::Critical, &Finding::RestartFails)
        );
        assert_eq!(status.severity_of("crash_loses"), severity);
        assert_eq!(status.threats(), [Threat::RestartFails, Threat::CrashLoses]);
    }
}

/// A server whose files have changed may have been started with "try" or with "on", in base pages also with "off".
#[test]
fn crash_of_a_server_whose_settings_at_its_start_are_unknown() {
    let of = |server: Server| {
        let status = Status::assess(Facts {
            requested_may_differ: true,
            ..server.facts()
        });
        (
            status.crash_outlook(),
            status
                .notes_on_outlook()
                .any(|note| note.contains("files have changed since")),
        )
    };
    let gone = Pool {
        surplus: Some(Pages(412)),
        ..pool(512, 0, 0)
    };
    for huge_pages in [HugePages::Try, HugePages::On] {
        let server = Server {
            huge_pages,
            pool: known(gone.clone()),
            ..Server::default()
        };
        assert_eq!(of(server), (Some(Outlook::Unknown), true));
    }
    assert_eq!(of(Server::default()), (Some(Outlook::Hugetlb), false));
}

/// Whatever has changed on disk, a crash takes its pages from the pool, which has too few: that is told, with what helps.
#[test]
fn crash_of_a_server_whose_next_start_is_unknown_or_does_not_fit() {
    let gone = Pool {
        surplus: Some(Pages(412)),
        ..pool(512, 0, 0)
    };
    let facts = Server {
        pool: known(gone.clone()),
        ..Server::default()
    }
    .facts();
    let unknown = Facts {
        requested_may_differ: true,
        pending: Pending::Unknown,
        ..facts
    };
    let too_large = with_on_disk(
        Server {
            pool: known(gone),
            ..Server::default()
        },
        30 << 10,
    );
    for status in [Status::assess(unknown), too_large] {
        assert_eq!(status.severity_of("crash_loses"), Severity::Warning);
        let (_, crash) = status
            .findings
            .iter()
            .find(|(_, finding)| *finding == Finding::CrashLoses)
            .unwrap();
        let message = message::of_finding(&status, crash);
        assert!(
            message.contains("a crash of one process would lose them: only 100 of the 512 pages"),
            "{message}"
        );
        let hint = message::hint_of_finding(&status, crash).unwrap();
        assert!(hint.contains("sysctl -w vm.nr_hugepages=512"), "{hint}");
        assert!(status.warnings().contains(&Threat::CrashLoses));
    }
}

/// A server in base pages whose files have changed may have been started with another page size. Its record has the pages that
/// it needed, by which the size is the same, or may not be.
#[test]
fn crash_in_base_pages_with_the_page_size_of_the_start() {
    let of = |enough, needed_at_start, others_may_serve: bool| {
        let free = if enough { 512 } else { 0 };
        let server = Server {
            pool: known(pool(free, free, 0)),
            ..Server::in_base_pages()
        };
        let past = Past {
            cause_at_start: Some(Cause::PoolEmpty),
            needed_at_start,
            loss: None,
        };
        let changed = Facts {
            requested_may_differ: true,
            past,
            has_other_pools: others_may_serve,
            ..server.facts()
        };
        Status::assess(changed).crash_outlook().unwrap()
    };
    for needed in [None, Some(Pages(1)), Some(Pages(64))] {
        assert_eq!(of(true, needed, false), Outlook::Unknown, "{needed:?}");
        assert_eq!(of(false, needed, true), Outlook::Unknown, "{needed:?}");
        assert_eq!(of(false, needed, false), Outlook::Base, "{needed:?}");
    }
    assert_eq!(of(true, Some(Pages(512)), true), Outlook::Hugetlb);
    assert_eq!(of(false, Some(Pages(512)), true), Outlook::Base);
}

/// A standby whose primary has raised its settings ends at a crash, whatever the pool has.
#[test]
fn crash_of_a_standby_that_has_less_than_its_primary() {
    let error = "FATAL:  recovery aborted because of insufficient parameter settings\nDETAIL:  max_connections = 20 is a \
                 lower setting than on the primary server, where its value was 100.";
    let of = |crash_recovery| {
        Status::assess(Facts {
            crash_recovery,
            ..Server::default().facts()
        })
    };
    let status = of(CrashRecovery::Refused(error.to_owned()));
    assert_eq!(outlooks(&status), (Outlook::Hugetlb, Some(Outlook::Fails)));
    assert_eq!(status.verdict(), (Severity::Critical, &Finding::CrashLoses));
    assert_eq!(
        message(&status),
        "Shared memory (1 GB) is in huge pages, but the restart after a crash of one process would fail: recovery aborted \
         because of insufficient parameter settings: max_connections = 20 is a lower setting than on the primary server, \
         where its value was 100."
    );
    assert!(
        hint(&status).unwrap().contains("as on the primary server"),
        "{:?}",
        hint(&status)
    );
    assert!(
        status
            .notes_on_outlook()
            .any(|note| note.starts_with("a restart after a crash would fail: recovery"))
    );
    let status = of(CrashRecovery::Unknown("why".to_owned()));
    assert_eq!(
        outlooks(&status),
        (Outlook::Hugetlb, Some(Outlook::Unknown))
    );
    assert_eq!(status.notes_on_outlook().collect::<Vec<_>>(), ["why"]);
}

#[test]
fn crash_of_a_server_whose_configuration_on_disk_would_land() {
    // The pool is gone but for 100 pages, and on disk less is asked for.
    let surplus = Pool {
        surplus: Some(Pages(412)),
        ..pool(512, 0, 0)
    };
    let status = with_on_disk(
        Server {
            pool: known(surplus),
            ..Server::default()
        },
        200,
    );
    assert_eq!(outlooks(&status), (Outlook::Hugetlb, Some(Outlook::Base)));
    assert_eq!(status.verdict(), (Severity::Warning, &Finding::CrashLoses));
    assert!(
        message(&status).contains("a crash of one process would lose them"),
        "{}",
        message(&status)
    );
    assert!(
        hint(&status).unwrap().contains("vm.nr_hugepages=512"),
        "{:?}",
        hint(&status)
    );
    // In base pages a crash has nothing to lose.
    let status = with_on_disk(
        Server {
            pool: known(pool(100, 100, 0)),
            ..Server::in_base_pages()
        },
        200,
    );
    assert_eq!(outlooks(&status), (Outlook::Hugetlb, Some(Outlook::Base)));
    assert_eq!(status.severity_of("crash_loses"), Severity::Ok);
}

/// A server whose `io_method` is `io_uring`, with so many pages of which 512 are its own or would be.
fn with_io_uring(server: Server) -> Facts {
    let facts = server.facts();
    Facts {
        requested: Requested {
            io_uring: true,
            ..facts.requested
        },
        ..facts
    }
}

const OF_RINGS: &str = "with io_method = io_uring old rings may keep huge pages until the server stops, and the kernel may refuse \
                        new ones (RLIMIT_MEMLOCK, RLIMIT_NOFILE, kernel.io_uring_disabled)";

/// However many pages are spare, old rings may take them, or the kernel may refuse new ones.
#[test]
fn a_start_with_io_uring_is_unknown_where_it_may_get_huge_pages() {
    for (spare, huge_pages) in [
        (0, HugePages::Try),
        (400, HugePages::Try),
        (0, HugePages::On),
    ] {
        let server = Server {
            huge_pages,
            pool: known(pool(512 + spare, spare, 0)),
            ..Server::default()
        };
        let status = Status::assess(with_io_uring(server));
        assert_eq!(
            outlooks(&status),
            (Outlook::Unknown, Some(Outlook::Unknown))
        );
        assert_eq!(
            status.verdict(),
            (Severity::Notice, &Finding::OutlookUnknown)
        );
        assert_eq!(
            message(&status),
            format!(
                "Shared memory (1 GB) is in 512 huge pages of 2 MB, but whether a restart succeeds is unknown: {OF_RINGS}."
            )
        );
        assert_eq!(hint(&status), None);
        assert_eq!(status.notes_on_outlook().collect::<Vec<_>>(), [OF_RINGS]);
    }
    // There is nothing to lose in base pages by choice.
    let by_choice = Server {
        huge_pages: HugePages::Off,
        ..Server::in_base_pages()
    };
    let status = Status::assess(with_io_uring(by_choice));
    assert_eq!(outlooks(&status), (Outlook::Base, Some(Outlook::Base)));
    assert_eq!(status.severity_of("outlook_unknown"), Severity::Ok);
    // What fails for certain does.
    let lowered = Pool {
        surplus: Some(Pages(512)),
        ..pool(512, 0, 0)
    };
    let server = Server {
        huge_pages: HugePages::On,
        pool: known(lowered),
        ..Server::default()
    };
    assert_eq!(
        outlooks(&Status::assess(with_io_uring(server))),
        (Outlook::Fails, Some(Outlook::Fails))
    );
}

/// Pages that nobody else has may be in rings of earlier crashes: they are free once the server has stopped.
#[test]
fn a_restart_with_io_uring_may_find_the_pages_of_old_rings() {
    let with = |nr, free| {
        let server = Server {
            pool: known(pool(nr, free, 0)),
            ..Server::in_base_pages()
        };
        Status::assess(with_io_uring(server))
    };
    let taken = with(512, 511);
    assert_eq!(outlooks(&taken), (Outlook::Unknown, Some(Outlook::Unknown)));
    assert_eq!(taken.notes_on_outlook().collect::<Vec<_>>(), [OF_RINGS]);
    assert!(
        hint(&taken).unwrap().contains("vm.nr_hugepages=513"),
        "{:?}",
        hint(&taken)
    );
    assert_eq!(
        outlooks(&with(511, 511)),
        (Outlook::Base, Some(Outlook::Base)),
        "too small, whoever has them"
    );
}

/// A crash takes the running settings. What lacks pages lacks them.
#[test]
fn io_uring_on_disk_alone() {
    let on_disk = |mib| {
        let facts = Server {
            pool: known(pool(512, 0, 0)),
            ..Server::default()
        }
        .facts();
        let requested = Requested {
            io_uring: true,
            ..facts.requested
        };
        let demand = Demand {
            requested,
            max_connections: 100,
            shared_memory: Bytes(mib * MIB),
        };
        let pending = Pending::Changed(demand, facts.pool_state.clone());
        Status::assess(Facts { pending, ..facts })
    };
    let status = on_disk(1024);
    assert_eq!(
        outlooks(&status),
        (Outlook::Unknown, Some(Outlook::Hugetlb))
    );
    assert_eq!(
        status.verdict(),
        (Severity::Notice, &Finding::OutlookUnknown)
    );
    assert_eq!(
        message(&status),
        format!(
            "It is unknown whether a restart with the configuration on disk gets huge pages: {OF_RINGS}."
        )
    );
    assert_eq!(status.notes_on_outlook().collect::<Vec<_>>(), [OF_RINGS]);
    let status = on_disk(1026);
    assert_eq!(outlooks(&status), (Outlook::Base, Some(Outlook::Hugetlb)));
    assert_eq!(status.notes_on_outlook().next(), None);
}

#[test]
fn oracle_does_not_restart_itself() {
    let mut facts = on_surplus().facts();
    facts.requested.product = Product::Oracle {
        memory_target: false,
        may_mix: false,
        use_large_pages: None,
        is_asm: false,
    };
    assert_eq!(Status::assess(facts).crash_outlook(), None);
}

/// What is logged while a server goes through these states, the first of which has no threat.
fn said(states: &[Status]) -> Vec<Vec<String>> {
    let instance = InstanceIdentity {
        machine: String::new(),
        directory: String::new(),
        system_identifier: String::new(),
        server_version_num: 150_000,
    };
    let logged = |pair: &[Status]| {
        let record = Record::new(Event::Change, String::new(), instance.clone(), &pair[1]);
        let update = events::update(&pair[1], record, None, &pair[0].warnings());
        update
            .messages
            .into_iter()
            .map(|message| message.message)
            .collect()
    };
    states.windows(2).map(logged).collect()
}

#[test]
fn the_log_is_never_wrong_about_a_crash() {
    const LOST: &str =
        "the restart after a crash of one process would lose huge pages [crash_loses]";
    const KEPT: &str = "the restart after a crash would no longer lose huge pages";
    const BOTH: &str = "the next start would lose huge pages (also after a crash) [restart_loses]";
    const AGAIN: &str = "the next start would get its huge pages again (also after a crash)";
    let well = || Server::default().status();
    let short = || on_surplus().status();
    let larger_on_disk = || with_on_disk(Server::default(), 4096);
    let both = || with_on_disk(on_surplus(), 4096);
    let smaller_on_disk = || {
        with_on_disk(
            Server {
                pool: known(Pool {
                    surplus: Some(Pages(412)),
                    ..pool(512, 0, 0)
                }),
                ..Server::default()
            },
            200,
        )
    };
    assert_eq!(said(&[well(), short(), well()]), [vec![BOTH], vec![AGAIN]]);
    // The files are as before again, and the pool is still too small.
    let of_disk =
        "the next start would lose huge pages with the configuration on disk [restart_loses]";
    assert_eq!(
        said(&[well(), larger_on_disk(), both(), short(), well()]),
        [vec![of_disk], vec![LOST], vec![], vec![AGAIN]]
    );
    // At once: the threat of the next start stands for a crash, too, but it was logged without one.
    assert_eq!(
        said(&[well(), larger_on_disk(), short(), well()]),
        [vec![of_disk], vec![LOST], vec![AGAIN]]
    );
    // Both are as before again, in one line.
    assert_eq!(
        said(&[well(), larger_on_disk(), both(), well()]),
        [vec![of_disk], vec![LOST], vec![AGAIN]]
    );
    // The pool is as before again, but the files are not.
    assert_eq!(
        said(&[well(), short(), larger_on_disk(), well()]),
        [vec![BOTH], vec![KEPT], vec![AGAIN]]
    );
    // Less is asked for on disk.
    let not_all =
        "the next start would get its huge pages again, but not the restart after a crash";
    assert_eq!(
        said(&[well(), short(), smaller_on_disk(), well()]),
        [vec![BOTH], vec![not_all], vec![KEPT]]
    );
}
