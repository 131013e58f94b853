//! Limits that are checked when a page is touched: alone, shared, now and after the next start.

use hugepage_assess::advice;
use hugepage_assess::assessment::{Finding, Outlook, Severity, Status, Threat};
use hugepage_assess::model::{Demand, Pending, PoolState};
use hugepage_facts::{Cause, Landing};
use hugepage_kernel::cgroups::cgroup::{CgroupLimit, CgroupLimits};
use hugepage_kernel::{Bytes, Pages};

use super::{GIB, MIB, Server, fault, known, limit, pool};

/// One limit of a hugetlb cgroup, whose processes were promised so much.
fn shared(bytes: u64, promised: u64) -> Option<CgroupLimits> {
    let limit = CgroupLimit {
        promised: Some(Bytes(promised)),
        ..limit(bytes, 0)
    };
    Some(CgroupLimits {
        fault: vec![limit],
        ..CgroupLimits::default()
    })
}

/// With a configuration on disk that needs `size`.
fn with_pending(server: Server, size: u64) -> Status {
    let mut facts = server.facts();
    let pool_state = PoolState {
        huge_page_size: facts.pool_state.huge_page_size,
        pool: facts.pool_state.pool.clone(),
        limits: facts.pool_state.limits.clone(),
        nodes: None,
        lock_limit: None,
        base_limits: Vec::new(),
    };
    let demand = Demand {
        requested: facts.requested,
        max_connections: 100,
        shared_memory: Bytes(size),
    };
    facts.pending = Pending::Changed(demand, pool_state);
    Status::assess(facts)
}

fn verdict(status: &Status) -> (Severity, Finding) {
    (status.verdict().0, status.verdict().1.clone())
}

/// Base pages, the pool is there now, and the limit would kill the server.
#[test]
fn the_limit_is_raised_before_the_restart() {
    let server = Server {
        pool: known(pool(512, 512, 0)),
        limits: fault(&[(GIB - 1, 0)]),
        ..Server::in_base_pages()
    };
    let status = server.status();
    assert_eq!(
        verdict(&status),
        (Severity::Critical, Finding::CgroupBelowSegment)
    );
    let expected =
        "Set /sys/fs/cgroup/limit_1073741823 to at least 1073741824 bytes and restart the server.";
    assert_eq!(advice::hint(&status).unwrap(), expected);
    assert_eq!(
        advice::message(&status),
        "The next start needs 1 GB in huge pages, but a cgroup allows only 1023 MB: a process that touches more is killed by \
         SIGBUS, or its reads fail."
    );
    assert_eq!(
        advice::events::allocated(&status, None, &[]).hint.unwrap(),
        expected
    );
}

/// The limit holds the running segment, and not that of the configuration on disk.
#[test]
fn the_configuration_on_disk_counts() {
    let server = |pages| Server {
        pool: known(pool(pages, pages - 512, 0)),
        limits: fault(&[(GIB + 20 * MIB, GIB)]),
        ..Server::default()
    };
    let status = with_pending(server(1000), GIB + 100 * MIB);
    assert_eq!(status.forecast.outlook, Outlook::Hugetlb);
    assert_eq!(
        verdict(&status),
        (Severity::Critical, Finding::CgroupBelowSegment)
    );
    assert_eq!(status.threats(), [Threat::CgroupLimit]);
    assert_eq!(
        advice::hint(&status).unwrap(),
        format!(
            "Set /sys/fs/cgroup/limit_{} to at least {} bytes.",
            GIB + 20 * MIB,
            GIB + 100 * MIB
        )
    );
    assert_eq!(
        verdict(&with_pending(server(1000), GIB + 20 * MIB)).1,
        Finding::AsRequested
    );
    // In base pages nothing is charged.
    assert_eq!(
        verdict(&with_pending(server(513), GIB + 100 * MIB)).1,
        Finding::RestartLoses
    );
}

/// What the next start exceeds is told beside what the running segment does, if it is another limit or more of it.
#[test]
fn excesses_of_now_and_of_the_next_start() {
    let path = |name: &str, bytes| CgroupLimit {
        path: name.to_owned(),
        ..limit(bytes, 0)
    };
    let both = CgroupLimits {
        fault: vec![path("a", GIB - 1), path("b", GIB + MIB)],
        ..CgroupLimits::default()
    };
    let server = Server {
        pool: known(pool(1000, 1000, 512)),
        limits: Some(both),
        ..Server::default()
    };
    let found = |status: &Status| {
        let excesses = status.excesses().into_iter();
        excesses
            .map(|excess| format!("{} {} {}", excess.path, excess.need.0 / MIB, excess.is_now))
            .collect::<Vec<_>>()
    };
    assert_eq!(found(&server.clone().status()), ["a 1024 true"]);
    let status = with_pending(server, GIB + 8 * MIB);
    assert_eq!(
        found(&status),
        ["a 1024 true", "a 1032 false", "b 1032 false"]
    );
    assert_eq!(status.findings.len(), 1, "one finding of all of them");
}

#[test]
fn what_shares_a_limit_counts() {
    let with = |bytes, promised| {
        Server {
            limits: shared(bytes, promised),
            ..Server::default()
        }
        .status()
    };
    assert_eq!(verdict(&with(2 * GIB, 2 * GIB)).1, Finding::AsRequested);
    let status = with(2 * GIB - 1, 2 * GIB);
    assert_eq!(verdict(&status), (Severity::Critical, Finding::SharedLimit));
    assert_eq!(status.threats(), [Threat::SharedLimit]);
    let words = advice::events::threatened(&status, Threat::SharedLimit);
    assert_eq!(
        words.message,
        "a cgroup allows fewer huge pages than its processes have reserved [shared_limit]"
    );
    assert_eq!(
        words.hint.unwrap(),
        format!(
            "Set /sys/fs/cgroup/limit_{} to at least {} bytes.",
            2 * GIB - 1,
            2 * GIB
        )
    );
    assert_eq!(
        verdict(&with(GIB - 1, 2 * GIB)).1,
        Finding::CgroupBelowSegment
    );
    assert_eq!(
        verdict(&with(GIB, 2 * GIB)).1,
        Finding::SharedLimit,
        "the segment alone reaches it"
    );
    // Its pages are charged elsewhere: those that it would touch come on top.
    assert_eq!(verdict(&with(GIB + 10, 11)).1, Finding::SharedLimit);
    // A server in base pages would share it after its restart.
    let base = Server {
        pool: known(pool(1024, 1024, 512)),
        limits: shared(2 * GIB - 1, GIB),
        ..Server::in_base_pages()
    };
    assert_eq!(
        verdict(&base.status()),
        (Severity::Critical, Finding::SharedLimit)
    );
    // Where others grow with the configuration on disk.
    let server = Server {
        memory: 64 * GIB,
        pool: known(pool(2000, 2000, 1024)),
        limits: shared(2 * GIB + MIB, 2 * GIB),
        ..Server::default()
    };
    assert_eq!(verdict(&server.clone().status()).1, Finding::AsRequested);
    let status = with_pending(server, GIB + 100 * MIB);
    assert_eq!(verdict(&status), (Severity::Critical, Finding::SharedLimit));
    assert_eq!(status.forecast.cause, Some(Cause::CgroupLimit));
}

/// An outlook that is uncertain makes no certain danger.
#[test]
fn what_may_miss_huge_pages_is_no_more_than_a_warning() {
    let limits = fault(&[(0, 0)]).map(|limits| CgroupLimits {
        hidden_levels: true,
        ..limits
    });
    let server = Server {
        landing: Some(Landing::Base),
        pool: known(pool(512, 512, 0)),
        limits,
        ..Server::default()
    };
    let status = server.status();
    assert_eq!(
        (status.forecast.outlook, status.severity_of("cgroup_limit")),
        (Outlook::Unknown, Severity::Warning)
    );
    assert_eq!(status.crash.needed, Some(Pages(512)));
}

/// Pages that are charged to another group do not come back to this one.
#[test]
fn own_pages_are_subtracted_only_where_they_are_charged() {
    let room = |usage, own| limit(GIB, usage).room_without(Bytes(own));
    assert_eq!(room(GIB, GIB), Bytes(GIB));
    assert_eq!(room(GIB - MIB, GIB), Bytes(MIB));
    assert_eq!(room(0, GIB), Bytes(GIB));
}
