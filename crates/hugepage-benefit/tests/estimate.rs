//! What huge pages would save: counts of two samples, times of faults, and the sentence.

use std::time::Duration;

use hugepage_assess::model::Landing;
use hugepage_benefit::Benefit;
use hugepage_benefit::benefit_value::Confidence;
use hugepage_benefit::model::{BenefitFacts, CountedProcess, FaultCost, FaultSample, PrivateTables, ProcessSample};
use hugepage_benefit::rows::{rows, summary};
use hugepage_kernel::proc::process::{ProcessStat, ProcessStatus};
use hugepage_kernel::{Bytes, PageSize};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// A fault takes 1 us and each page that it maps 0.1 us; 16 pages in a read fault.
const COST: FaultCost =
    FaultCost { per_fault: 1e-6, per_page: 0.1e-6, per_unmapped_page: 0.2e-6, pages_per_read_fault: 16.0 };

/// `shared` and `anon`: resident memory in bytes. Page tables are those of shared memory and 100 kB.
fn process(pid: i32, start_ticks: u64, minor_faults: u64, shared: u64, anon: u64) -> ProcessSample {
    ProcessSample {
        pid,
        stat: ProcessStat { minor_faults, start_ticks, ..ProcessStat::default() },
        status: ProcessStatus {
            page_tables: Some(Bytes(100 * KIB + shared / 512)),
            rss_shmem: Some(Bytes(shared)),
            rss_anon: Some(Bytes(anon)),
            rss_file: Some(Bytes(0)),
            ..ProcessStatus::default()
        },
    }
}

fn sample(processes: &[ProcessSample], faults_of_ended: u64) -> FaultSample {
    FaultSample { processes: processes.to_vec(), faults_of_ended }
}

fn assess(before: &FaultSample, after: &FaultSample, change: impl FnOnce(&mut BenefitFacts<'_>)) -> Benefit {
    let sizes = [2 * MIB, GIB].map(|size| PageSize::new(size).unwrap());
    let sessions: Vec<i32> = after.processes.iter().map(|process| process.pid).filter(|pid| *pid > 1).collect();
    let mut facts = BenefitFacts {
        samples: [before, after],
        newcomers: &[],
        elapsed: Duration::from_secs(10),
        observer: 0,
        sessions: &sessions,
        private_tables: &PrivateTables::default(),
        cost: Some(COST),
        segment: Bytes(8 * GIB),
        landing: Landing::Base,
        page_size: PageSize::from_kib(4),
        base: PageSize::from_kib(4).unwrap(),
        sizes: Some(&sizes),
        max_connections: Some(100),
        memory: Some(Bytes(64 * GIB)),
    };
    change(&mut facts);
    Benefit::estimate(&facts)
}

#[track_caller]
fn close(value: Option<f64>, expected: f64) {
    let value = value.unwrap();
    assert!((value - expected).abs() <= expected.abs() * 1e-9, "{value} instead of {expected}");
}

/// Eight sessions scan 4 GB each by read faults of 16 pages.
#[test]
fn a_scan_by_sessions() {
    let idle = process(1, 5, 10, 0, 0);
    let with = |faults, shared| {
        let sessions = (2..10).map(|pid| process(pid, 9, faults, shared, 0));
        sample(&std::iter::once(idle).chain(sessions).collect::<Vec<_>>(), 0)
    };
    let pages = 4 * GIB / 4096;
    let benefit = assess(&with(1000, 0), &with(1000 + pages / 16, 4 * GIB), |_| {});
    let each = 65536.0 * 1e-6 + 1_048_576.0 * 0.1e-6;
    close(benefit.fault_cpu.base, 8.0 * each / 10.0);
    // At most a fault for each of the 4096 pages of 2 MB, and for each of the 8 pages of 1 GB.
    close(benefit.fault_cpu.huge[0], 8.0 * 4096.0 * 1.1e-6 / 10.0);
    close(benefit.fault_cpu.huge[1], 8.0 * 8.0 * 1.1e-6 / 10.0);
    assert_eq!(benefit.fault_cpu.confidence, Confidence::Measured);
    close(benefit.warm_up.base, each);
    close(benefit.exit.base, 1_048_576.0 * 0.2e-6);
    close(benefit.exit.huge[0], 4096.0 * 0.2e-6);
    assert_eq!((benefit.fork.base, benefit.fork.huge), (Some(0.0), [Some(0.0); 2]));
    close(benefit.page_tables.base, (9 * 100 * KIB + 8 * 8 * MIB) as f64);
    // 8 kB of its own for each session that touches shared memory, and 7 shared tables.
    close(benefit.page_tables.huge[0], (9 * 100 * KIB + 8 * 8 * KIB + 7 * 4 * KIB) as f64);
    close(benefit.page_tables_freed.huge[0], (8 * 8 * MIB - 8 * 8 * KIB - 7 * 4 * KIB) as f64);
    assert_eq!(benefit.page_tables_freed.base, None);
    close(benefit.page_tables_per_session.base, (8 * MIB) as f64);
    close(benefit.page_tables_per_session.huge[0], (8 * KIB) as f64);
    close(benefit.page_tables_at_max_connections.base, (100 * (100 * KIB + 16 * MIB)) as f64);
    assert_eq!(benefit.is_worth_it, Some(true));
    assert_eq!(
        summary(&benefit),
        "In the last 10 s page faults on shared memory took 14% of one CPU; a new session needs 170 ms to become warm. \
         In pages of 2 MB: at most 0.36% and 4.5 ms; 64.8 MB of page tables would be 992 kB."
    );
}

/// Eight sessions have 40 kB of page tables for pages of shared memory that they have touched alone, beside 8 MB.
#[test]
fn page_tables_of_sparse_memory_are_freed_too() {
    let idle = process(1, 5, 10, 0, 0);
    let sessions = (2..10).map(|pid| process(pid, 9, 10, 4 * GIB, 0));
    let sample = sample(&std::iter::once(idle).chain(sessions).collect::<Vec<_>>(), 0);
    let counted = |process: &ProcessSample, private| CountedProcess { status: process.status, private: Bytes(private) };
    let private = Box::leak(Box::new(PrivateTables {
        of_session: Some(counted(&sample.processes[1], 60 * KIB)),
        of_other: Some(counted(&idle, 100 * KIB)),
    }));
    let benefit = assess(&sample, &sample, |facts| facts.private_tables = private);
    close(benefit.page_tables.huge[0], (100 * KIB + 8 * 60 * KIB + 8 * 8 * KIB + 7 * 4 * KIB) as f64);
    close(benefit.page_tables_per_session.base, (8 * MIB + 40 * KIB) as f64);
    let detail =
        |benefit: &Benefit| rows(benefit).into_iter().find(|row| row.figure == "page_tables_freed").unwrap().detail;
    assert_eq!(detail(&benefit), "Memory that the page tables would give back.");
    // The kernel did not show it.
    let benefit = assess(&sample, &sample, |_| {});
    close(benefit.page_tables.huge[0], (100 * KIB + 8 * 100 * KIB + 8 * 8 * KIB + 7 * 4 * KIB) as f64);
    assert!(detail(&benefit).contains("; a lower bound, because"), "{}", detail(&benefit));
}

#[test]
fn a_quiet_server_is_not_worth_a_restart() {
    let idle = [process(1, 5, 10, 0, 0), process(2, 9, 500, 8 * MIB, MIB)];
    let benefit = assess(&sample(&idle, 0), &sample(&idle, 0), |_| {});
    assert_eq!((benefit.fault_cpu.base, benefit.is_worth_it), (Some(0.0), Some(false)));
    let text = summary(&benefit);
    assert!(text.starts_with("Not worth a restart for page faults and page tables: in the last 10 s"), "{text}");
    assert!(text.ends_with(" of page tables would be 216 kB."), "{text}");
}

/// The count of faults of a process is not by memory.
#[test]
fn faults_on_private_memory_do_not_count() {
    let grown = |faults, shared, anon| sample(&[process(1, 5, 10, 0, 0), process(2, 9, faults, shared, anon)], 0);
    let pages = MIB / 4096;
    // As many faults as pages of private memory, and one for each 16 shared pages.
    let benefit = assess(&grown(0, 0, 0), &grown(pages + pages / 16, MIB, MIB), |_| {});
    close(benefit.fault_cpu.base, (16.0 * 1e-6 + 256.0 * 0.1e-6) / 10.0);
    assert_eq!(benefit.fault_cpu.confidence, Confidence::Measured);
    // Private memory that was freed again: at most one fault for each shared page.
    let benefit = assess(&grown(0, 0, 0), &grown(100_000, MIB, 0), |_| {});
    close(benefit.fault_cpu.base, 256.0 * 1.1e-6 / 10.0);
    assert_eq!(benefit.fault_cpu.confidence, Confidence::Modelled);
}

/// The observer maps memory of its own to measure what a fault costs.
#[test]
fn the_faults_of_the_observer_do_not_count() {
    let grown = |faults, shared| sample(&[process(1, 5, 10, 0, 0), process(2, 9, faults, shared, 0)], 0);
    let (before, after) = (grown(0, 0), grown(100_000, MIB));
    assert!(assess(&before, &after, |_| {}).fault_cpu.base.unwrap() > 0.0);
    let benefit = assess(&before, &after, |facts| facts.observer = 2);
    assert_eq!((benefit.fault_cpu.base, benefit.fault_cpu.confidence), (Some(0.0), Confidence::Measured));
    close(benefit.page_tables.base, (2 * 100 * KIB + 2 * KIB) as f64);
}

/// 1000 sessions came and went between the samples; one of each moment shows what share of faults was on shared memory.
#[test]
fn sessions_too_short_to_be_seen() {
    let before = sample(&[process(1, 5, 10, 0, 0), process(2, 9, 80, 64 * 4096, 76 * 4096)], 7000);
    let after = sample(&[process(1, 5, 10, 0, 0), process(3, 99, 80, 64 * 4096, 76 * 4096)], 7000 + 80 * 1000);
    let benefit = assess(&before, &after, |_| {});
    // Each has 4 faults of 16 pages. The faults of process 2 before the first sample are not of the interval.
    let each = 4.0 * 1e-6 + 64.0 * 0.1e-6;
    close(benefit.fault_cpu.base, each * 1000.0 / 10.0);
    assert_eq!((benefit.fault_cpu.confidence, benefit.misses_short_sessions), (Confidence::Modelled, false));
    // Its pid is the same, but it is another process.
    let reused = sample(&[process(1, 5, 10, 0, 0), process(2, 99, 80, 64 * 4096, 76 * 4096)], 7000 + 80);
    close(assess(&before, &reused, |_| {}).fault_cpu.base, each / 10.0);
    // One was seen in between, and another one that has just begun: it has touched nothing yet.
    let early = sample(&[process(1, 5, 10, 0, 0), process(3, 99, 20, 0, 20 * 4096)], 7000 + 80 * 1000);
    let newcomers = Box::leak(Box::new([process(4, 50, 80, 64 * 4096, 76 * 4096), process(3, 99, 10, 0, 10 * 4096)]));
    let none_before = sample(&[process(1, 5, 10, 0, 0)], 7000);
    assert_eq!(assess(&none_before, &early, |_| {}).fault_cpu.base, Some(0.0));
    let seen = assess(&none_before, &early, |facts| facts.newcomers = newcomers);
    // 100 faults of both, of which 4 are on shared memory, stand for 80,000.
    close(seen.fault_cpu.base, each * 800.0 / 10.0);
    // None was seen.
    let quiet = |ended| sample(&[process(1, 5, 10, 0, 0)], ended);
    let benefit = assess(&quiet(0), &quiet(50_000), |_| {});
    assert!(benefit.misses_short_sessions && benefit.fault_cpu.confidence == Confidence::Modelled);
    assert!(rows(&benefit)[1].detail.contains("without those of sessions that began and ended"));
}

#[test]
fn unknown_is_not_zero() {
    let grown = |faults, shared| sample(&[process(1, 5, 10, 0, 0), process(2, 9, faults, shared, 0)], 0);
    let (before, after) = (grown(0, 0), grown(100, MIB));
    let benefit = assess(&before, &after, |facts| facts.cost = None);
    assert_eq!((benefit.fault_cpu.base, benefit.fault_cpu.confidence), (None, Confidence::Unknown));
    assert_eq!((benefit.warm_up.base, benefit.exit.base, benefit.is_worth_it), (None, None, None));
    assert!(benefit.page_tables.base.is_some(), "page tables are known all the same");
    // Before Linux 4.5.
    let mut old = after.clone();
    old.processes.iter_mut().for_each(|process| process.status.rss_shmem = None);
    let benefit = assess(&before, &old, |_| {});
    assert_eq!((benefit.fault_cpu.base, benefit.page_tables.base), (None, None));
    // A kernel without pages of 1 GB, and one without any.
    const TWO: &[PageSize] = &[PageSize::from_kib(2048).unwrap()];
    let benefit = assess(&before, &after, |facts| facts.sizes = Some(TWO));
    assert!(benefit.page_tables.huge[0].is_some() && benefit.page_tables.huge[1].is_none());
    let benefit = assess(&before, &after, |facts| facts.sizes = Some(&[]));
    assert!(summary(&benefit).ends_with("What huge pages would save could not be determined."));
    let benefit = assess(&before, &after, |facts| facts.max_connections = None);
    let row = rows(&benefit).pop().unwrap();
    assert_eq!((row.figure, row.base, row.confidence), ("page_tables_at_max_connections", None, Confidence::Unknown));
}

#[test]
fn rows_have_three_significant_digits_and_nothing_to_gain_is_one_row() {
    let before = sample(&[process(1, 1, 0, 0, 0), process(2, 2, 0, 0, 0)], 0);
    let after = sample(&[process(1, 1, 0, 0, 0), process(2, 2, 12_347, 777 * MIB + 4 * KIB, 0)], 0);
    for row in rows(&assess(&before, &after, |_| {})) {
        for value in [row.base, row.huge_2mb, row.huge_1gb].into_iter().flatten() {
            let digits: String =
                format!("{value:e}").split('e').next().unwrap().chars().filter(char::is_ascii_digit).collect();
            assert!(digits.len() <= 3, "{}: {value}", row.figure);
        }
    }
    let in_huge_pages = rows(&assess(&before, &after, |facts| facts.landing = Landing::Hugetlb));
    assert_eq!(in_huge_pages.iter().map(|row| row.figure).collect::<Vec<_>>(), ["summary"]);
}

#[test]
fn huge_pages_already() {
    let one = sample(&[process(1, 5, 10, 0, 0)], 0);
    let benefit = assess(&one, &one, |facts| {
        (facts.landing, facts.page_size) = (Landing::Hugetlb, PageSize::from_kib(2048));
    });
    assert_eq!(summary(&benefit), "Shared memory is in huge pages of 2 MB already: there is nothing to gain.");
    assert_eq!(benefit.page_tables.huge, [Some((100 * KIB) as f64), None]);
    assert_eq!((benefit.page_tables.base, benefit.fault_cpu.base), (None, None));
    // There is no column for pages of 512 MB.
    let benefit = assess(&one, &one, |facts| {
        (facts.landing, facts.page_size) = (Landing::Hugetlb, PageSize::new(512 * MIB));
    });
    assert_eq!((benefit.page_tables.huge, benefit.page_tables.confidence), ([None, None], Confidence::Unknown));
    let benefit = assess(&one, &one, |facts| facts.landing = Landing::PartialThp);
    assert!(summary(&benefit).starts_with("Shared memory is in partial thp pages"));
}
