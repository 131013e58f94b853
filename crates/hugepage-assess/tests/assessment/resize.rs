//! A segment that may grow while the server runs: what it has, what a restart finds, and the event in the history.

use hugepage_assess::advice::events;
use hugepage_assess::assessment::{Outlook, Status};
use hugepage_assess::history::record::InstanceIdentity;
use hugepage_assess::history::{Event, Record};
use hugepage_assess::model::{Facts, Landing, Segment};
use hugepage_kernel::mapping::maps::Mapping;
use hugepage_kernel::{Bytes, PageSize, Pages};

use super::{GIB, MIB, Server, known, pool};

/// A server with 1 GB of address space, of which it may access this much.
fn of_current(current: u64, server: Server) -> Facts {
    let facts = server.facts();
    let segment = facts.segment.as_ref().unwrap();
    let mapping = Mapping {
        inaccessible: Bytes(GIB - current),
        ..hugepage_kernel::mapping::maps::parse(&format!(
            "7f0000000000-{:x} rw-s 00000000 00:10 1028 /anon_hugepage (deleted)",
            0x7f00_0000_0000 + GIB
        ))
        .unwrap()
    };
    let mapping = Mapping { page_size: PageSize::new(2 * MIB), ..mapping };
    Facts { segment: Some(Segment::of_mapping(&mapping, segment.landing)), ..facts }
}

#[test]
fn reserved_and_current_stay_apart() {
    let facts = of_current(128 * MIB, Server::default());
    let segment = facts.segment.clone().unwrap();
    assert_eq!((segment.size, segment.reserved, segment.to_reserve), (Bytes(128 * MIB), Bytes(GIB), Bytes(128 * MIB)));
    assert_eq!((segment.landing, segment.in_huge_pages), (Landing::Hugetlb, Bytes(128 * MIB)));
    assert_eq!((facts.own_at_least(), facts.own()), (Pages(0), Pages(64)));
    assert_eq!(Status::assess(facts).needed, Some(Pages(64)), "what it has, not what it may have");
    let fixed = Server::default().facts();
    assert_eq!(fixed.own_at_least(), fixed.own());
}

/// Of the pages in use nobody can tell which are its own: it touched them, or another process did.
#[test]
fn the_outlook_is_certain_only_where_its_own_pages_do_not_matter() {
    let outlook = |nr, free| {
        let status =
            Status::assess(of_current(128 * MIB, Server { pool: known(pool(nr, free, 0)), ..Server::default() }));
        (status.outlook, status.crash.outlook)
    };
    assert_eq!(
        outlook(128, 64),
        (Outlook::Hugetlb, Outlook::Hugetlb),
        "64 free pages are enough, whosever the others are"
    );
    assert_eq!(outlook(64, 10), (Outlook::Unknown, Outlook::Unknown), "if it has the other 54, and not if others have");
    assert_eq!(outlook(63, 0), (Outlook::Base, Outlook::Base), "one page too few in any case");
    let notes: Vec<_> =
        Status::assess(of_current(128 * MIB, Server { pool: known(pool(64, 10, 0)), ..Server::default() }))
            .notes_on_outlook()
            .collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("may be its own or those of others"), "{notes:?}");
}

fn record_of(status: &Status, generation: i64) -> Record {
    let instance = InstanceIdentity {
        machine: String::new(),
        directory: String::new(),
        system_identifier: String::new(),
        server_version_num: 200_000,
    };
    Record { generation, segment: Some(1028), ..Record::new(Event::Change, String::new(), instance, status) }
}

#[test]
fn a_resize_is_an_event_of_its_own() {
    let plenty = || Server { pool: known(pool(1024, 1000, 0)), ..Server::default() };
    let [small, large] = [128, 192].map(|mib| Status::assess(of_current(mib * MIB, plenty())));
    let update = |status: &Status, before: &Record| {
        events::update(status, record_of(status, before.generation), Some(before), &[]).record
    };
    let before = record_of(&small, 1);
    let grown = update(&large, &before).unwrap();
    assert_eq!((grown.event, grown.shared_memory, grown.pages_needed), (Event::Resize, Some(192 * MIB), Some(96)));
    assert_eq!(grown.detail.as_deref(), Some("shared_memory from 128 MB to 192 MB"));
    assert_eq!(grown.lost, None, "more memory in the same pages is no loss");
    assert_eq!(update(&large, &grown), None, "nothing has changed since");
    let shrunk = update(&small, &grown).unwrap();
    assert_eq!((shrunk.event, shrunk.detail.as_deref()), (Event::Resize, Some("shared_memory from 192 MB to 128 MB")));

    let of_another_start = Record { generation: 2, ..record_of(&large, 2) };
    assert!(!of_another_start.is_resize_of(&before), "a start with another size is no resize");
    let unread = Record { shared_memory: None, ..record_of(&large, 1) };
    assert!(!unread.is_resize_of(&before) && !before.is_resize_of(&unread), "a size that could not be read");
}

/// Growth that takes what the next start needs: the event is the resize, and it is a regression.
#[test]
fn a_resize_that_loses_the_outlook_is_a_regression() {
    let with = |mib, free| {
        Status::assess(of_current(mib * MIB, Server { pool: known(pool(128, free, 0)), ..Server::default() }))
    };
    let before = record_of(&with(128, 64), 1);
    let now = with(512, 0);
    let record = events::update(&now, record_of(&now, 1), Some(&before), &[]).record.unwrap();
    assert_eq!((record.event, record.restart_outlook), (Event::Resize, Outlook::Base));
    assert!(record.lost.is_some() && record.detail.unwrap().contains("shared_memory from 128 MB to 512 MB"));
}

/// A line that an older version wrote, and one that it can't read.
#[test]
fn the_event_in_the_file() {
    let status = Status::assess(of_current(128 * MIB, Server::default()));
    let record = Record { event: Event::Resize, ..record_of(&status, 1) };
    assert_eq!(Event::Resize.name(), "resize");
    let line = record.to_line();
    assert!(line.contains(r#""event":"resize""#), "{line}");
    let read = Record::from_line(line.trim_end().as_bytes());
    assert_eq!(read, Some(hugepage_assess::history::record::HistoryLine::Record(Box::new(record))));
}
