//! The restart after a crash: io_uring, a standby behind its primary, settings that have changed.

use hugepage_assess::model::{CrashRecovery, Facts, HugePages, Pending};
use hugepage_facts::Cause;
use hugepage_kernel::Pages;

use super::super::{GIB, Host, page_size};
use super::{State, changed};

const fn with_io_uring(facts: &mut Facts) {
    facts.requested.io_uring = true;
}

pub fn states() -> Vec<State> {
    let base = |pool| Host {
        huge: false,
        pool,
        ..Host::default()
    };
    vec![
        changed(
            "io_uring",
            Host {
                pool: [600, 600, 534, 0, 9],
                ..Host::default()
            },
            with_io_uring,
        ),
        changed(
            "io_uring, with on",
            Host {
                huge_pages: HugePages::On,
                ..Host::default()
            },
            with_io_uring,
        ),
        changed(
            "io_uring, in base pages by choice",
            Host {
                huge_pages: HugePages::Off,
                ..base([0; 5])
            },
            with_io_uring,
        ),
        changed(
            "io_uring, and the pool was lowered",
            Host {
                pool: [534, 100, 100, 534, 9],
                ..Host::default()
            },
            with_io_uring,
        ),
        changed(
            "io_uring, and a page is taken",
            base([534, 533, 0, 0, 0]),
            with_io_uring,
        ),
        changed(
            "io_uring, and a pool of 1 GB pages",
            Host {
                gigantic: [3, 3, 0, 0, 0],
                shared_buffers: 2 * GIB,
                ..base([0; 5])
            },
            with_io_uring,
        ),
        changed(
            "io_uring on disk alone",
            Host {
                on_disk: Some(GIB),
                ..Host::default()
            },
            |facts| {
                let Pending::Changed(demand, _) = &mut facts.pending else {
                    unreachable!()
                };
                demand.requested.io_uring = true;
            },
        ),
        changed("a standby behind its primary", Host::default(), |facts| {
            let text = "FATAL:  recovery aborted because of insufficient parameter settings\nDETAIL:  max_connections = 100 is a \
                        lower setting than on the primary server, where its value was 200.";
            facts.crash_recovery = CrashRecovery::Refused(text.to_owned());
        }),
        changed(
            "a standby behind its primary, with io_uring",
            Host {
                pool: [534, 534, 534, 0, 0],
                ..Host::default()
            },
            |facts| {
                with_io_uring(facts);
                facts.crash_recovery = CrashRecovery::Refused("no".to_owned());
            },
        ),
        changed(
            "a standby behind its primary, and the pool was lowered",
            Host {
                pool: [534, 100, 100, 534, 9],
                ..Host::default()
            },
            |facts| {
                facts.crash_recovery = CrashRecovery::Refused("no".to_owned());
            },
        ),
        changed(
            "a standby of which it is unknown",
            Host::default(),
            |facts| {
                facts.crash_recovery =
                    CrashRecovery::Unknown("pg_control could not be read".to_owned());
            },
        ),
        changed(
            "files have changed since, and the pool was lowered",
            Host {
                pool: [534, 100, 100, 534, 9],
                ..Host::default()
            },
            |facts| {
                facts.requested_may_differ = true;
            },
        ),
        changed(
            "files have changed since, in base pages",
            base([534, 534, 0, 0, 9]),
            |facts| facts.requested_may_differ = true,
        ),
        changed(
            "files have changed since, and the pool was empty",
            base([534, 534, 0, 0, 9]),
            |facts| {
                facts.requested_may_differ = true;
                facts.past.cause_at_start = Some(Cause::PoolEmpty);
                facts.past.needed_at_start = Some(Pages(534));
            },
        ),
        changed(
            "files have changed since, and one page of any size holds it",
            Host {
                page_size: page_size(GIB),
                gigantic: [1, 1, 0, 0, 0],
                shared_buffers: GIB / 2,
                ..base([0; 5])
            },
            |facts| {
                facts.requested_may_differ = true;
                facts.past.cause_at_start = Some(Cause::PoolEmpty);
                facts.past.needed_at_start = Some(Pages(1));
            },
        ),
    ]
}
