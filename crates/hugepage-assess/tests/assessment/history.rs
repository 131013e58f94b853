//! The history of an instance: its lines, whose they are, what changed, and what was lost.

use hugepage_assess::advice::events;
use hugepage_assess::assessment::{Outlook, Status, Threat};
use hugepage_assess::history::record::{
    Before, InstanceIdentity, MAX_LINE_BYTES, VERSION, boot_of, line_of_boot,
};
use hugepage_assess::history::regression;
use hugepage_assess::history::{Event, Record};
use hugepage_assess::model::{Facts, HugePages, Pending};
use hugepage_facts::{Cause, Landing};
use hugepage_kernel::next_boot::BootLook;
use hugepage_kernel::{PageSize, Pages};

use super::{Server, known, pool};

fn identity(
    machine: &str,
    directory: &str,
    system_identifier: &str,
    server_version_num: u32,
) -> InstanceIdentity {
    InstanceIdentity {
        machine: machine.to_owned(),
        directory: directory.to_owned(),
        system_identifier: system_identifier.to_owned(),
        server_version_num,
    }
}

fn record(status: &Status) -> Record {
    let (at, instance) = (
        "2026-11-21T10:00:00Z".to_owned(),
        identity("machine", "/data", "7", 170_002),
    );
    Record {
        postmaster_start: "2026-11-21T09:00:00Z".to_owned(),
        generation: 3,
        server_version: "17.2".to_owned(),
        host: "db1".to_owned(),
        boot_id: Some("boot".to_owned()),
        segment: Some(1028),
        ..Record::new(Event::Change, at, instance, status)
    }
}

fn well() -> Status {
    Server::default().status()
}

fn lowered() -> Status {
    Server {
        pool: known(pool(100, 90, 20)),
        ..Server::default()
    }
    .status()
}

fn in_base_pages() -> Status {
    Server::in_base_pages().status()
}

#[test]
fn whose_history_it_is() {
    let now = identity("m", "/a", "7", 170_002);
    for (past, expected) in [
        (now.clone(), true),
        (identity("m", "/a", "7", 160_004), true),
        (identity("other", "/a", "7", 170_002), false),
        (identity("m", "/b", "7", 170_002), false),
        // pg_upgrade, in another directory.
        (identity("m", "/b", "6", 160_004), true),
        (identity("other", "/b", "6", 160_004), false),
        // Another cluster of the same major, or of a newer one.
        (identity("m", "/a", "6", 170_001), false),
        (identity("m", "/a", "6", 180_000), false),
    ] {
        assert_eq!(past.is_past_of(&now), expected, "{past:?}");
    }
}

#[test]
fn a_line_of_a_boot() {
    let look = BootLook {
        boot_id: "boot".to_owned(),
        boot_age_seconds: 40,
        pools: [(PageSize::from_kib(2048).unwrap(), Pages(70))].into(),
        shm_group: Some(54321),
        ..BootLook::default()
    };
    let line = line_of_boot(&look);
    let json = r#"{"boot_id":"boot","machine_id":"","boot_age_seconds":40,"pools":{"2097152":70},"sources":"","shm_group":54321}"#;
    assert_eq!(line[9..], format!("{{\"v\":1,\"boot\":{json}}}\n"));
    let earlier = json.replace(r#","shm_group":54321"#, "");
    let earlier: BootLook = serde_json::from_str(&earlier).unwrap();
    assert_eq!(earlier.shm_group, None);
    assert_eq!(boot_of(line.trim_end()), Some(look.clone()));
    assert_eq!(boot_of(&line.trim_end().replace(":40", ":41")), None);
    let record = Record {
        boot: Some(look),
        ..record(&lowered())
    };
    let read = Record::from_line(record.to_line().trim_end().as_bytes());
    assert_eq!(read, Some(Some(record)));
}

#[test]
fn lines() {
    let record = record(&lowered());
    let line = record.to_line();
    let bytes = line.strip_suffix('\n').unwrap().as_bytes();
    assert_eq!(Record::from_line(bytes), Some(Some(record.clone())));
    let json = std::str::from_utf8(Record::json_of(bytes).unwrap()).unwrap();
    for part in [
        r#""landed_in":"hugetlb","page_size":2097152,"shared_memory":1073741824,"pages_needed":512,"#,
        r#""huge_page_size":2097152,"nr_hugepages":100,"free_hugepages":90,"resv_hugepages":20,"surplus_hugepages":0,"page_tables":67108864,"restart_outlook":"base","#,
        r#""cause":null,"threats":["restart_loses"],"lost":null,"detail":null"#,
    ] {
        assert!(json.contains(part), "{json}");
    }
    let newer = json.replace("[\"restart_loses\"]", "[\"of_later\",\"restart_loses\"]");
    assert_eq!(
        serde_json::from_str::<Record>(&newer).unwrap().threats,
        [Threat::RestartLoses]
    );
    // Of another version, damaged, and longer than any record.
    let later = Record {
        v: VERSION + 1,
        ..record.clone()
    }
    .to_line();
    assert_eq!(Record::from_line(later.trim_end().as_bytes()), Some(None));
    assert_eq!(Record::from_line(&bytes[..bytes.len() - 1]), None);
    assert_eq!(Record::from_line(b"00000000"), None);
    let of_length = |length: usize| {
        let empty = Record {
            detail: Some(String::new()),
            ..record.clone()
        }
        .to_line()
        .len()
            - 1;
        let line = Record {
            detail: Some("x".repeat(length - empty)),
            ..record.clone()
        }
        .to_line();
        Record::from_line(line.trim_end().as_bytes()).is_some()
    };
    assert_eq!(
        [of_length(MAX_LINE_BYTES), of_length(MAX_LINE_BYTES + 1)],
        [true, false]
    );
}

#[test]
fn changes() {
    let (before, now) = (record(&well()), record(&lowered()));
    assert_eq!(before.changes_since(&before), Vec::<String>::new());
    assert_eq!(
        now.changes_since(&before),
        [
            "restart_outlook from hugetlb to base",
            "nr_hugepages from 512 to 100",
            "threats from none to restart_loses"
        ]
    );
    assert_eq!(
        record(&in_base_pages()).changes_since(&before),
        [
            "landed_in from hugetlb to base",
            "page_size from 2097152 to 4096",
            "restart_outlook from hugetlb to base",
            "cause from none to pool_empty",
            "nr_hugepages from 512 to 0",
        ]
    );
    let mut detailed = Record {
        detail: Some("lost".to_owned()),
        ..before.clone()
    };
    detailed.add_detail(&["a".to_owned(), "b".to_owned()]);
    assert_eq!(detailed.detail.as_deref(), Some("lost; a; b"));
    let mut bare = before.clone();
    bare.add_detail(&[]);
    assert_eq!(bare.detail, None);
    for (is_same, other) in [
        (
            true,
            Record {
                recorded_at: String::new(),
                ..before.clone()
            },
        ),
        (
            false,
            Record {
                generation: 4,
                ..before.clone()
            },
        ),
        (
            false,
            Record {
                postmaster_start: String::new(),
                ..before.clone()
            },
        ),
    ] {
        assert_eq!(before.is_of_same_start_as(&other), is_same);
    }
    let events = [
        Event::Start,
        Event::CrashRestart,
        Event::Change,
        Event::Collapse,
        Event::Split,
    ];
    assert_eq!(
        events.map(Event::is_start),
        [true, true, false, false, false]
    );
    assert_eq!(
        events.map(Event::name),
        ["start", "crash restart", "change", "collapse", "split"]
    );
}

/// Landing, page size and outlook before and now, and what is said of it.
#[test]
fn losses() {
    use Landing::{Base, Hugetlb, Mixed, PartialThp, Thp, Unknown};
    type State = (Landing, u64, Outlook);
    let (mega, giga, small) = (2 << 20, 1 << 30, 4 << 10);
    let kept = |landing, size| (landing, size, Outlook::Hugetlb);
    let lost = |outlook| (Hugetlb, mega, outlook);
    let cases: [(State, State, Option<&str>); 13] = [
        (kept(Hugetlb, mega), kept(Hugetlb, mega), None),
        (kept(Hugetlb, mega), kept(Hugetlb, giga), None),
        (
            kept(Hugetlb, giga),
            kept(Hugetlb, mega),
            Some("was in huge pages of 1 GB, is in huge pages of 2 MB"),
        ),
        (
            kept(Hugetlb, mega),
            kept(Mixed, mega),
            Some("was in huge pages of 2 MB, is in huge pages only in part"),
        ),
        (
            kept(Mixed, mega),
            kept(Thp, small),
            Some("was in huge pages only in part, is in transparent huge pages"),
        ),
        (
            kept(Thp, small),
            kept(PartialThp, small),
            Some("was in transparent huge pages, is in partly transparent huge pages"),
        ),
        (
            kept(PartialThp, small),
            kept(Base, small),
            Some("was in partly transparent huge pages, is in 4 kB pages"),
        ),
        (kept(Base, 64 << 10), kept(Base, small), None),
        (kept(Unknown, mega), kept(Base, small), None),
        (kept(Hugetlb, mega), kept(Unknown, mega), None),
        (
            kept(Hugetlb, mega),
            lost(Outlook::Base),
            Some("would have kept huge pages of 2 MB at a restart, and would lose them now"),
        ),
        (kept(Hugetlb, mega), lost(Outlook::Unknown), None),
        (lost(Outlook::Unknown), lost(Outlook::Fails), None),
    ];
    let status = well();
    for (before, now, expected) in cases {
        let of = |(landed_in, size, restart_outlook): State| Record {
            landed_in,
            page_size: PageSize::new(size),
            restart_outlook,
            ..record(&status)
        };
        let found =
            regression(&Before::state_of(&of(before)), &of(now)).map(|lost| lost.to_string());
        assert_eq!(found.as_deref(), expected, "{before:?} {now:?}");
        let mut now = of(now);
        let compared = now.compare_with(&of(before));
        assert_eq!(
            (now.detail.as_deref(), now.lost.is_some()),
            (expected, expected.is_some())
        );
        let loss = now.loss().map(|loss| (loss.lost, loss.at_utc()));
        assert_eq!(
            loss,
            compared.map(|lost| (lost, "2026-11-21 10:00:00 UTC".to_owned()))
        );
    }
    let by_choice = Record {
        cause: Some(Cause::Disabled),
        ..record(&in_base_pages())
    };
    assert_eq!(
        regression(&Before::state_of(&record(&status)), &by_choice),
        None
    );
}

/// A server with `huge_pages` of which a part is collapsed, then all, and which swap splits.
#[test]
fn transparent_huge_pages_come_and_go() {
    use Landing::{Base, PartialThp, Thp, Unknown};
    let of = |landing, huge_pages| {
        Server {
            landing: Some(landing),
            huge_pages,
            pool: known(pool(0, 0, 0)),
            ..Server::default()
        }
        .status()
    };
    for (was, is, event, said) in [
        (
            Base,
            Thp,
            Event::Collapse,
            Some("is in transparent huge pages now"),
        ),
        (
            Base,
            PartialThp,
            Event::Collapse,
            Some("is partly in transparent huge pages now"),
        ),
        (
            PartialThp,
            Thp,
            Event::Collapse,
            Some("is in transparent huge pages now"),
        ),
        (
            Thp,
            PartialThp,
            Event::Split,
            Some("has lost transparent huge pages now"),
        ),
        (
            Thp,
            Base,
            Event::Split,
            Some("has lost transparent huge pages now"),
        ),
        (Unknown, Thp, Event::Change, None),
        (Base, Base, Event::Change, None),
    ] {
        for huge_pages in [HugePages::Off, HugePages::Try] {
            let (before, status) = (of(was, huge_pages), of(is, huge_pages));
            let update = events::update(&status, record(&status), Some(&record(&before)), &[]);
            assert_eq!(update.record.is_some(), was != is, "{was} {is}");
            assert!(update.record.is_none_or(|record| record.event == event));
            let regressed = event == Event::Split && huge_pages != HugePages::Off;
            let messages = update.messages.into_iter().map(|entry| entry.message);
            let found = messages.collect::<Vec<_>>().join("; ");
            match said {
                _ if regressed => assert!(found.contains("regressed: it was in"), "{found}"),
                Some(said) => assert!(found.ends_with(said), "{found}"),
                None => assert_eq!(found, ""),
            }
        }
    }
}

#[test]
fn what_a_start_is_logged_as() {
    let before = record(&well());
    let said = |status: &Status, before| {
        let report = events::start(status, record(status), before);
        let lines: Vec<_> = report
            .messages
            .into_iter()
            .map(|message| (message.is_bad, message.message))
            .collect();
        (lines, report.record.unwrap().lost.is_some())
    };
    let line = |level, text: &str| (level, text.to_owned());
    let landed = "shared memory landed in 512 huge pages of 2 MB";
    assert_eq!(
        said(&well(), Some(&before)),
        (vec![line(false, landed)], false)
    );
    let warning = line(
        true,
        "the next start would lose huge pages (also after a crash) [restart_loses]",
    );
    assert_eq!(
        said(&lowered(), None),
        (vec![line(false, landed), warning.clone()], false)
    );
    let base = "shared memory did not land in huge pages [base_pages]";
    assert_eq!(
        said(&in_base_pages(), None),
        (vec![line(true, base)], false)
    );
    let regressed =
        "shared memory regressed: it was in huge pages of 2 MB, is in 4 kB pages [regressed]";
    assert_eq!(
        said(&in_base_pages(), Some(&before)),
        (vec![line(true, regressed)], true)
    );
}

#[test]
fn what_a_change_is_logged_and_recorded_as() {
    let before = record(&well());
    let update = |status: &Status, before: Option<&Record>| {
        let report = events::update(status, record(status), before, &status.warnings());
        let lines: Vec<_> = report
            .messages
            .into_iter()
            .map(|message| (message.is_bad, message.message))
            .collect();
        (lines, report.record.and_then(|record| record.detail))
    };
    assert_eq!(
        events::update(&well(), record(&well()), Some(&before), &[]).record,
        None
    );
    assert!(
        events::update(&well(), record(&well()), None, &[])
            .record
            .is_some()
    );
    let (messages, detail) = update(&lowered(), Some(&before));
    let lost = "would have kept huge pages of 2 MB at a restart, and would lose them now; restart_outlook from hugetlb to base; nr_hugepages from 512 to 100; threats from none to restart_loses";
    assert_eq!((messages, detail.as_deref()), (vec![], Some(lost)));
    let (messages, _) = update(&in_base_pages(), Some(&before));
    let regressed =
        "shared memory regressed: it was in huge pages of 2 MB, is in 4 kB pages [regressed]"
            .to_owned();
    assert_eq!(messages, [(true, regressed)]);
}

/// While nobody knows what the next start asks for, what was logged of it stands; all of it while no shared memory is seen.
#[test]
fn warnings_that_stand() {
    let with = |pending| {
        Status::assess(Facts {
            pending,
            ..Server::default().facts()
        })
    };
    let warned = [Threat::RestartLoses, Threat::CgroupLimit];
    assert_eq!(
        events::standing(&with(Pending::Unknown), &warned),
        [Threat::RestartLoses]
    );
    assert_eq!(events::standing(&with(Pending::Unchanged), &warned), []);
    let ending = Status::assess(Facts {
        segment: None,
        ..Server::default().facts()
    });
    assert_eq!(events::standing(&ending, &warned), warned);
    assert_eq!(
        events::standing(&lowered(), &[]),
        [Threat::RestartLoses, Threat::CrashLoses]
    );
}

/// Each threat that is over, by what the next start and a crash would get now.
#[test]
fn the_end_of_a_threat() {
    use Threat::{CgroupLimit, CrashLoses, RestartFails, RestartLoses, SharedLimit};
    let surplus = || {
        Server {
            pool: known(hugepage_kernel::memory::pool::Pool {
                overcommit: Some(hugepage_kernel::Pages(512)),
                ..pool(100, 90, 20)
            }),
            ..Server::default()
        }
        .status()
    };
    let off = || {
        Server {
            huge_pages: HugePages::Off,
            ..Server::in_base_pages()
        }
        .status()
    };
    for (status, threat, expected) in [
        (
            well(),
            CgroupLimit,
            "the cgroup allows all huge pages of shared memory again",
        ),
        (
            well(),
            SharedLimit,
            "the cgroup allows all huge pages that its processes have reserved again",
        ),
        (
            well(),
            CrashLoses,
            "the restart after a crash would no longer lose huge pages",
        ),
        (
            well(),
            RestartFails,
            "the next start would get its huge pages again (also after a crash)",
        ),
        (
            well(),
            RestartLoses,
            "the next start would get its huge pages again (also after a crash)",
        ),
        (
            off(),
            RestartFails,
            "the next start would no longer fail (also after a crash)",
        ),
        (
            surplus(),
            RestartLoses,
            "the next start may get its huge pages again, but this is not guaranteed (also after a crash)",
        ),
        (
            surplus(),
            CrashLoses,
            "the restart after a crash may get its huge pages again, but this is not guaranteed",
        ),
    ] {
        assert_eq!(
            hugepage_assess::advice::events::threat_is_over(&status, threat).message,
            expected,
            "{threat}"
        );
    }
}
