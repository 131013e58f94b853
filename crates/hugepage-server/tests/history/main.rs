//! The history file under everything that can happen to a file, and what counts as a loss.

#![allow(clippy::disallowed_methods)]

mod damage;
mod instances;
mod killed;
mod memory;
mod places;
mod regressions;

use hugepage_assess::assessment::Outlook;
use hugepage_assess::history::record::{InstanceIdentity, VERSION};
use hugepage_assess::history::{Event, Record};
use hugepage_facts::Landing;
use hugepage_kernel::{Bytes, PageSize, Pages};
use hugepage_server::history::{History, HistoryFile};

/// A server in 70 huge pages of 2 MB, as asked and for certain; `number` tells records apart.
fn record(number: i64) -> Record {
    Record {
        v: VERSION,
        recorded_at: "2026-11-21T10:00:00.000001Z".to_owned(),
        event: Event::Start,
        generation: number,
        postmaster_start: "2026-11-21T09:59:59.900000Z".to_owned(),
        server_version: "15.20".to_owned(),
        host: "db1".to_owned(),
        boot_id: None,
        instance: instance(),
        segment: None,
        landed_in: Landing::Hugetlb,
        page_size: PageSize::new(2 << 20),
        huge_page_size: None,
        key: None,
        mount: None,
        host_directory: None,
        shared_memory: Some(Bytes(140 << 20)),
        pages_needed: Some(Pages(70)),
        nr_hugepages: Some(Pages(70)),
        free_hugepages: Some(Pages(63)),
        resv_hugepages: Some(Pages(63)),
        surplus_hugepages: Some(Pages(0)),
        page_tables: Some(Bytes(8 << 20)),
        restart_outlook: Outlook::Hugetlb,
        cause: None,
        threats: Vec::new(),
        lost: None,
        detail: None,
        boot: None,
    }
}

fn instance() -> InstanceIdentity {
    InstanceIdentity {
        machine: "57e36840".to_owned(),
        directory: "/var/lib/postgresql/15/main".to_owned(),
        system_identifier: "7710572194914248055".to_owned(),
        server_version_num: 150_020,
    }
}

/// A file in a directory of its own, which goes with the first value. In memory, for some tests rewrite it thousands of
/// times. None writes much: Docker gives it 64 MB for all of them.
fn new_file() -> (tempfile::TempDir, HistoryFile) {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let file = HistoryFile::at(directory.path().join("pg_hugepages.history"));
    (directory, file)
}

/// All of it; empty if there is no file.
fn read(file: &HistoryFile) -> History {
    file.records()
        .unwrap()
        .map_or_else(History::default, |records| records.read(u64::MAX).unwrap())
}

/// The numbers of the records that can be read.
fn numbers(file: &HistoryFile) -> Vec<i64> {
    let all = read(file);
    if let Some(mut one_by_one) = file.records().unwrap() {
        for _again in 0..2 {
            let found: Vec<_> = one_by_one.by_ref().map(Result::unwrap).collect();
            assert_eq!((&found, one_by_one.damaged), (&all.records, all.damaged));
            one_by_one.rewind(u64::MAX).unwrap();
        }
    }
    all.records.iter().map(|record| record.generation).collect()
}
