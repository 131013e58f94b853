//! Servers with io_uring: the kernel may refuse the rings of a start, which then fails whatever pages it has.

use hugepage_assess::advice::{hint, message};
use hugepage_assess::assessment::ring_answer::counts_memlock;
use hugepage_assess::assessment::{Finding, Outlook, Severity, Status};
use hugepage_assess::model::{
    Cause, Demand, Facts, HugePages, Landing, Pending, PoolState, Requested, RingDemand, RingLimits, StartLimit,
};
use hugepage_kernel::host::kernel_release::KernelRelease;
use hugepage_kernel::{Bytes, PageSize};

use crate::{GIB, MIB, Server, pool};

/// A ring of 64 entries takes two base pages of 4 kB.
const RING: u64 = 8192;
const RINGS: RingDemand = RingDemand { count: 1000, entries: 64 };

fn limits() -> RingLimits {
    RingLimits {
        base: PageSize::from_kib(4).unwrap(),
        is_disabled: Ok(false),
        counts_memlock: Some(true),
        memlock: StartLimit::default(),
        open_files: StartLimit::default(),
        open: RINGS.count,
        other_files: 20,
        locked_by_others: Bytes(0),
        service: None,
    }
}

fn at(limit: u64) -> StartLimit {
    StartLimit { running: Some(limit), next: Some(limit) }
}

/// A server with a spare page in its pool, whose rings meet `limits`.
fn facts(limits: RingLimits) -> Facts {
    let facts = Server { pool: crate::known(pool(600, 600, 512)), ..Server::default() }.facts();
    let requested = Requested { rings: Some(RINGS), ..facts.requested };
    Facts { requested, pool_state: PoolState { ring_limits: Some(limits), ..facts.pool_state.clone() }, ..facts }
}

fn outlooks(limits: RingLimits) -> (Outlook, Outlook) {
    let status = Status::assess(facts(limits));
    (status.outlook, status.crash_outlook().unwrap())
}

#[test]
fn locked_memory_at_its_borders() {
    use Outlook::{Fails, Hugetlb, Unknown};
    let with = |memlock| outlooks(RingLimits { memlock: at(memlock), ..limits() });
    assert_eq!(outlooks(limits()), (Hugetlb, Hugetlb));
    assert_eq!(with(1000 * RING - 1), (Fails, Fails));
    // PostgreSQL tries the kernel with one more, and closed ones may still count after a crash.
    assert_eq!(with(1000 * RING), (Unknown, Unknown));
    assert_eq!(with(1001 * RING), (Hugetlb, Unknown));
    assert_eq!(with(2000 * RING), (Hugetlb, Hugetlb));
    let of_others = |locked| RingLimits { memlock: at(2000 * RING), locked_by_others: Bytes(locked), ..limits() };
    assert_eq!(outlooks(of_others(1001 * RING)), (Fails, Fails));
    // Kernels that do not count, or of which it is unknown.
    let counts = |counts_memlock| outlooks(RingLimits { memlock: at(RING), counts_memlock, ..limits() });
    assert_eq!([counts(Some(false)), counts(None)], [(Hugetlb, Hugetlb), (Unknown, Unknown)]);
}

#[test]
fn the_limit_of_the_unit_is_for_the_next_start() {
    let memlock = StartLimit { running: Some(8 * MIB), next: Some(12 * MIB) };
    let status = Status::assess(facts(RingLimits { memlock, ..limits() }));
    assert_eq!((status.outlook, status.crash_outlook()), (Outlook::Hugetlb, Some(Outlook::Unknown)));
    let memlock = StartLimit { running: None, next: Some(6 * MIB) };
    assert_eq!(outlooks(RingLimits { memlock, ..limits() }), (Outlook::Fails, Outlook::Hugetlb));
}

#[test]
fn open_files_at_their_borders() {
    use Outlook::{Fails, Hugetlb, Unknown};
    let with = |open_files| outlooks(RingLimits { open_files: at(open_files), ..limits() });
    assert_eq!(with(1060), (Fails, Unknown));
    assert_eq!(with(1061), (Unknown, Unknown));
    assert_eq!(with(1125), (Hugetlb, Unknown));
    assert_eq!(with(2084), (Hugetlb, Hugetlb));
    assert_eq!(outlooks(RingLimits { open_files: at(1019), ..limits() }).1, Fails);
}

#[test]
fn disabled() {
    let of = |is_disabled| outlooks(RingLimits { is_disabled, ..limits() });
    assert_eq!(of(Ok(true)), (Outlook::Fails, Outlook::Fails));
    assert_eq!(of(Err("a filter".to_owned())), (Outlook::Unknown, Outlook::Unknown));
    let status = Status::assess(facts(RingLimits { is_disabled: Ok(true), ..limits() }));
    assert_eq!(status.forecast.cause, Some(Cause::IoUring));
    assert_eq!(status.verdict(), (Severity::Critical, &Finding::RestartFails));
    assert_eq!(
        message(&status),
        "The next start would fail: kernel.io_uring_disabled forbids the rings of io_method = io_uring."
    );
    assert_eq!(hint(&status).unwrap(), "Run \"sysctl -w kernel.io_uring_disabled=0\", or set io_method = worker.");
    let unknown = Status::assess(facts(RingLimits { is_disabled: Err("a filter".to_owned()), ..limits() }));
    assert!(unknown.notes_on_outlook().any(|note| note == "whether a restart succeeds depends on a filter"));
}

#[test]
fn hints_that_help() {
    let service = Some("postgresql@18-main.service".to_owned());
    let tight = RingLimits { memlock: at(8 * 1000 * 1000), service, ..limits() };
    let status = Status::assess(facts(tight.clone()));
    assert_eq!(
        message(&status),
        "The next start would fail: 1000 io_uring rings need 8000 kB of locked memory, and its memlock limit is 7812 kB."
    );
    assert_eq!(
        hint(&status).unwrap(),
        "Run \"mkdir -p /etc/systemd/system/postgresql@18-main.service.d && printf '[Service]\\nLimitMEMLOCK=16777216\\n' > \
         /etc/systemd/system/postgresql@18-main.service.d/memlock.conf && systemctl daemon-reload\" and restart the server, or \
         set io_method = worker."
    );
    let without = Status::assess(facts(RingLimits { service: None, ..tight.clone() }));
    assert_eq!(
        hint(&without).unwrap(),
        "Raise the memlock limit of the server to at least 16384 kB and restart the server, or set io_method = worker."
    );
    let files = Status::assess(facts(RingLimits { open_files: at(1000), ..limits() }));
    assert_eq!(
        hint(&files).unwrap(),
        "Raise the server's limit on open files (ulimit -n) to at least 3064 and restart the server, or set io_method = \
         worker."
    );
    // In base pages by choice it stays there.
    let by_choice = Facts { segment: Server::in_base_pages().facts().segment, ..facts(tight) };
    let by_choice = Facts { requested: Requested { huge_pages: HugePages::Off, ..by_choice.requested }, ..by_choice };
    let by_choice = Status::assess(by_choice);
    assert_eq!((by_choice.facts.landing(), by_choice.outlook), (Landing::Base, Outlook::Fails));
    let hint = hint(&by_choice).unwrap();
    assert!(hint.contains("LimitMEMLOCK") && !hint.contains("huge_pages"), "{hint}");
}

#[test]
fn rings_that_only_the_configuration_on_disk_asks_for() {
    let tight = RingLimits { memlock: at(8 * MIB), open: 0, ..limits() };
    let running = facts(tight.clone());
    let on_disk = Requested { rings: Some(RingDemand { count: 2000, entries: 64 }), ..running.requested };
    let demand = Demand { requested: on_disk, max_connections: 2000, shared_memory: Bytes(GIB) };
    let running = Facts { requested: Requested { rings: None, ..running.requested }, ..running };
    let pool_state = running.pool_state.clone();
    let status = Status::assess(Facts { pending: Pending::Changed(demand, pool_state), ..running });
    assert_eq!((status.outlook, status.crash_outlook()), (Outlook::Fails, Some(Outlook::Hugetlb)));
    assert_eq!(
        message(&status),
        "The next start with the configuration on disk would fail: 2000 io_uring rings need 15.6 MB of locked memory, and its \
         memlock limit is 8 MB."
    );
    assert_eq!(
        hint(&status).unwrap(),
        "Raise the memlock limit of the server to at least 32768 kB, or set io_method = worker."
    );
}

#[test]
fn rings_of_settings() {
    let rings = |io_method, buffers: u64, set: &'static [(&str, i64)]| {
        let number =
            |name: &str, default| set.iter().find(|(found, _)| *found == name).map_or(default, |(_, value)| *value);
        RingDemand::of_settings(io_method, Bytes(buffers), number)
    };
    assert_eq!(rings(None, GIB, &[]), None);
    assert_eq!(rings(Some("worker"), GIB, &[]), None);
    // As 18.6 had them: 102 with max_connections = 60.
    let of_60 = rings(Some("IO_URING"), GIB, &[("max_connections", 60)]);
    assert_eq!(of_60, Some(RingDemand { count: 102, entries: 64 }));
    assert_eq!(rings(Some("io_uring"), 16 * MIB, &[]).unwrap().entries, 2048 / (142 + 32));
    assert_eq!(rings(Some("io_uring"), GIB, &[("io_max_concurrency", 256)]).unwrap().entries, 256);
}

#[test]
fn kernels_that_count_rings() {
    for (release, expected) in [
        ("5.11.22", None),
        ("5.12.0", Some(false)),
        ("6.13.12", Some(false)),
        ("6.12.0-55.el10.x86_64", None),
        ("6.14.0", Some(true)),
        ("6.14.0-100.el10.x86_64", Some(true)),
    ] {
        assert_eq!(counts_memlock(KernelRelease::parse(release)), expected, "{release}");
    }
    assert_eq!(counts_memlock(None), None);
}
