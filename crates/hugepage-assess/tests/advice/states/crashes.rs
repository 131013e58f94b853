//! The restart after a crash: rings of io_uring, a standby behind its primary, settings that have changed.

use hugepage_assess::model::{
    Cause, CrashRecovery, Facts, HugePages, KeptPages, Pending, Requested, RingDemand, RingLimits, StartLimit,
};
use hugepage_kernel::{Bytes, PageSize, Pages};

use super::super::{GIB, Host, MIB, page_size};
use super::limits::nodes;
use super::{State, changed};

/// A ring of 64 entries takes two base pages of 4 kB.
fn rings(facts: &mut Facts) -> &mut RingLimits {
    facts.requested.rings = Some(RingDemand { count: 1000, entries: 64 });
    facts.pool_state.ring_limits.insert(RingLimits {
        base: PageSize::from_kib(4).unwrap(),
        is_disabled: Ok(false),
        counts_memlock: Some(true),
        memlock: StartLimit::default(),
        open_files: StartLimit::default(),
        open: 1000,
        other_files: 20,
        locked_by_others: Bytes(0),
        service: None,
    })
}

/// What is on disk, with rings of which it is unknown whether they are forbidden.
fn with_rings_on_disk(facts: &mut Facts) -> &mut Requested {
    rings(facts).is_disabled = Err("kernel.io_uring_disabled".to_owned());
    let (requested, limits) = (facts.requested, facts.pool_state.ring_limits.clone());
    let Pending::Changed(demand, pool_state) = &mut facts.pending else { unreachable!() };
    (demand.requested.rings, pool_state.ring_limits) = (requested.rings, limits);
    &mut demand.requested
}

const fn at(limit: u64) -> StartLimit {
    StartLimit { running: Some(limit), next: Some(limit) }
}

fn kept(facts: &mut Facts, crashes: u64) {
    facts.requested.rings = Some(RingDemand { count: 100, entries: 64 });
    facts.kept_at_crash = KeptPages { at_least: Pages(1), at_most: Pages(2), crashes };
}

pub fn states() -> Vec<State> {
    let on = || Host { huge_pages: HugePages::On, ..Host::default() };
    let base = |pool| Host { huge: false, pool, ..Host::default() };
    vec![
        changed("the kernel forbids rings", Host::default(), |facts| rings(facts).is_disabled = Ok(true)),
        changed(
            "the kernel forbids rings, in base pages by choice",
            Host { huge_pages: HugePages::Off, ..base([0; 5]) },
            |facts| {
                rings(facts).is_disabled = Ok(true);
            },
        ),
        changed("whether rings are forbidden is unknown", Host::default(), |facts| {
            rings(facts).is_disabled = Err("kernel.io_uring_disabled".to_owned());
        }),
        changed(
            "a server with rings, and a pool of 1 GB pages",
            Host { gigantic: [3, 3, 0, 0, 0], shared_buffers: 2 * GIB, ..base([0; 5]) },
            |facts| {
                rings(facts);
            },
        ),
        changed("memlock refuses rings", Host::default(), |facts| rings(facts).memlock = at(8 * MIB - MIB)),
        changed("memlock refuses rings beside those of others, in a unit", Host::default(), |facts| {
            let limits = rings(facts);
            (limits.memlock, limits.locked_by_others) = (at(8 * MIB), Bytes(4 * MIB));
            limits.service = Some("postgresql@17-main.service".to_owned());
        }),
        changed("memlock may refuse rings", Host::default(), |facts| rings(facts).memlock = at(8 * MIB)),
        changed(
            "memlock refuses rings at a crash, where they are kept",
            Host { pool: [600, 600, 534, 0, 9], ..Host::default() },
            |facts| {
                kept(facts, 0);
                rings(facts).memlock = at(12 * MIB);
            },
        ),
        changed("memlock refuses rings at the next start alone", Host::default(), |facts| {
            rings(facts).memlock = StartLimit { running: None, next: Some(6 * MIB) };
        }),
        changed("too few open files", base([0; 5]), |facts| rings(facts).open_files = at(1024)),
        changed("too few open files, in a unit", Host::default(), |facts| {
            let limits = rings(facts);
            (limits.open_files, limits.service) = (at(1000), Some("postgresql.service".to_owned()));
        }),
        changed("open files may be too few", Host::default(), |facts| rings(facts).open_files = at(1100)),
        changed(
            "rings of more on disk are forbidden",
            Host { on_disk: Some(GIB + MIB), pool: [700, 700, 534, 0, 9], ..Host::default() },
            |facts| {
                rings(facts).is_disabled = Ok(true);
                let (requested, limits) = (facts.requested, facts.pool_state.ring_limits.clone());
                let Pending::Changed(demand, pool_state) = &mut facts.pending else { unreachable!() };
                (demand.requested.rings, pool_state.ring_limits) = (requested.rings, limits);
            },
        ),
        changed(
            "System V on disk, and whether rings are forbidden is unknown",
            Host { on_disk: Some(2 * GIB), ..Host::default() },
            |facts| {
                with_rings_on_disk(facts).sysv = true;
            },
        ),
        changed(
            "off on disk, and whether rings are forbidden is unknown",
            Host { on_disk: Some(2 * GIB), ..Host::default() },
            |facts| {
                with_rings_on_disk(facts).huge_pages = HugePages::Off;
            },
        ),
        changed("rings keep pages at a crash", Host::default(), |facts| kept(facts, 0)),
        changed("rings may keep pages at a crash", Host { pool: [534, 534, 534, 0, 0], ..Host::default() }, |facts| {
            kept(facts, 0);
            facts.kept_at_crash.at_least = Pages(0);
        }),
        changed("rings keep pages at a crash, with on", on(), |facts| kept(facts, 0)),
        changed(
            "rings keep pages at a crash, and one is spare",
            Host { pool: [535, 535, 534, 0, 9], ..Host::default() },
            |facts| kept(facts, 0),
        ),
        changed(
            "rings keep pages at a crash, and no surplus pages are allowed",
            Host { pool: [534, 534, 534, 0, 0], ..Host::default() },
            |facts| kept(facts, 0),
        ),
        changed(
            "rings keep pages at a crash, and the pool was lowered",
            Host { pool: [534, 100, 100, 534, 600], ..Host::default() },
            |facts| kept(facts, 0),
        ),
        changed(
            "rings keep pages at a crash, with on, and no surplus pages are allowed",
            Host { pool: [534, 534, 534, 0, 0], ..on() },
            |facts| kept(facts, 1),
        ),
        changed(
            "rings keep pages, and all are there",
            Host { pool: [541, 541, 534, 0, 9], ..Host::default() },
            |facts| kept(facts, 0),
        ),
        changed("rings kept pages at two crashes", Host { pool: [536, 534, 534, 0, 9], ..Host::default() }, |facts| {
            kept(facts, 2)
        }),
        changed(
            "rings kept pages at two crashes, and the pool was lowered",
            Host { pool: [536, 0, 0, 2, 0], ..Host::default() },
            |facts| kept(facts, 2),
        ),
        changed("rings keep pages on a node", Host { pool: [1068, 534, 0, 0, 0], ..Host::default() }, |facts| {
            kept(facts, 0);
            nodes(facts, &[(534, 0, 0), (534, 534, 0)]);
        }),
        changed(
            "rings keep pages, and the host has no more",
            Host { shared_buffers: 12 * GIB, pool: [6553, 6553, 6300, 0, 0], at_boot: Some(6553), ..Host::default() },
            |facts| {
                kept(facts, 0);
                facts.kept_at_crash.at_most = Pages(300);
            },
        ),
        changed("a standby behind its primary", Host::default(), |facts| {
            let text = "FATAL:  recovery aborted because of insufficient parameter settings\nDETAIL:  max_connections = 100 is a \
                        lower setting than on the primary server, where its value was 200.";
            facts.crash_recovery = CrashRecovery::Refused(text.to_owned());
        }),
        changed(
            "a standby behind its primary, whose rings keep pages",
            Host { pool: [534, 534, 534, 0, 0], ..Host::default() },
            |facts| {
                kept(facts, 0);
                facts.crash_recovery = CrashRecovery::Refused("no".to_owned());
            },
        ),
        changed(
            "a standby behind its primary, and the pool was lowered",
            Host { pool: [534, 100, 100, 534, 9], ..Host::default() },
            |facts| {
                facts.crash_recovery = CrashRecovery::Refused("no".to_owned());
            },
        ),
        changed("a standby of which it is unknown", Host::default(), |facts| {
            facts.crash_recovery = CrashRecovery::Unknown("pg_control could not be read".to_owned());
        }),
        changed(
            "files have changed since, and the pool was lowered",
            Host { pool: [534, 100, 100, 534, 9], ..Host::default() },
            |facts| {
                facts.requested_may_differ = true;
            },
        ),
        changed("files have changed since, in base pages", base([534, 534, 0, 0, 9]), |facts| {
            facts.requested_may_differ = true
        }),
        changed("files have changed since, and the pool was empty", base([534, 534, 0, 0, 9]), |facts| {
            facts.requested_may_differ = true;
            facts.past.cause_at_start = Some(Cause::PoolEmpty);
            facts.past.needed_at_start = Some(Pages(534));
        }),
        changed(
            "files have changed since, and one page of any size holds it",
            Host { page_size: page_size(GIB), gigantic: [1, 1, 0, 0, 0], shared_buffers: GIB / 2, ..base([0; 5]) },
            |facts| {
                facts.requested_may_differ = true;
                facts.past.cause_at_start = Some(Cause::PoolEmpty);
                facts.past.needed_at_start = Some(Pages(1));
            },
        ),
        changed("shared memory may grow", Host::default(), |facts| {
            let segment = facts.segment.as_mut().unwrap();
            segment.reserved = Bytes(8 * GIB);
        }),
        changed(
            "shared memory may grow, and pages are surplus",
            Host { pool: [534, 0, 0, 0, 600], ..Host::default() },
            |facts| {
                let segment = facts.segment.as_mut().unwrap();
                segment.reserved = Bytes(8 * GIB);
            },
        ),
    ]
}
