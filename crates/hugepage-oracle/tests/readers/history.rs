//! All starts of an instance, also in rotated logs, and what was lost between them.

use std::io::Cursor;
use std::time::Instant;

use hugepage_assess::model::Landing;
use hugepage_kernel::Notes;
use hugepage_oracle::log_history::{MAX_STARTS, RememberedStart, remembered};
use hugepage_oracle::readers::alert_log::starts_in;

use super::*;

/// A start of 19c: its time, the huge pages that it expected and got, and its PMON; `None` failed.
fn start(time: &str, expected: u64, allocated: u64, pmon: Option<u32>) -> String {
    let pmon = match pmon {
        Some(pid) => format!("{time}\nPMON started with pid=2, OS id={pid} \n"),
        None => format!("{time}\nORA-27137: unable to allocate Large Pages to create a shared memory segment\n"),
    };
    format!(
        "{time}\nStarting ORACLE instance (normal) (OS id: 77)\n{time}\n  PAGESIZE  AVAILABLE_PAGES  EXPECTED_PAGES  \
         ALLOCATED_PAGES  ERROR(s)\n        4K       Configured               4           {}        NONE\n     2048K            \
         {allocated:5}        {expected:5}            {allocated:5}        NONE\n{pmon}{time}\nsome other line\n",
        4 + (expected - allocated) * 512
    )
}

fn of(text: &str) -> Vec<RememberedStart> {
    remembered(starts_in(&mut Cursor::new(text.as_bytes()), MAX_STARTS, &mut { u64::MAX }).unwrap())
}

/// Landing, whether it failed, what was lost, and since when.
fn shown(starts: &[RememberedStart]) -> Vec<(Landing, bool, Option<String>, usize)> {
    let one = |start: &RememberedStart| {
        (start.got.landing, start.failed, start.lost.map(|lost| lost.to_string()), start.since)
    };
    starts.iter().map(one).collect()
}

#[test]
fn each_start_and_what_it_lost() {
    let text = [
        start("2024-01-01T10:00:00.000000+01:00", 2000, 2000, Some(1)),
        start("2024-02-01T10:00:00.000000+01:00", 2000, 2000, Some(2)),
        start("2024-03-01T10:00:00.000000+01:00", 2000, 100, None),
        start("2024-03-01T10:00:01.000000+01:00", 2000, 0, Some(4)),
        start("2024-03-02T10:00:00.000000+01:00", 2000, 0, Some(5)),
        start("2024-03-03T10:00:00.000000+01:00", 2000, 2000, Some(6)),
    ]
    .concat();
    let lost = Some("was in huge pages of 2 MB, is in 4 kB pages".to_owned());
    let starts = of(&text);
    assert_eq!(
        shown(&starts),
        [
            (Landing::Hugetlb, false, None, 0),
            (Landing::Hugetlb, false, None, 0),
            (Landing::Unknown, true, None, 2),
            (Landing::Base, false, lost, 3),
            (Landing::Base, false, None, 3),
            (Landing::Hugetlb, false, None, 5),
        ]
    );
    assert_eq!(starts[1].in_huge_pages.map(|size| size.0), Some(2000 * 2 * MIB));
    assert_eq!(humantime::format_rfc3339_seconds(starts[0].at().unwrap()).to_string(), "2024-01-01T09:00:00Z");
}

#[test]
fn base_pages_by_choice_are_no_loss() {
    let list = "System parameters with non-default values:\n  use_large_pages = \"FALSE\"\nPMON started";
    let second = start("2024-02-01T10:00:00.000000+01:00", 2000, 0, Some(2)).replace("PMON started", list);
    let starts = of(&(start("2024-01-01T10:00:00.000000+01:00", 2000, 2000, Some(1)) + &second));
    assert_eq!(shown(&starts)[1], (Landing::Base, false, None, 1));
}

/// A log that is cut anywhere shows no start that it has not, and no panic.
#[test]
fn every_cut_of_a_log() {
    let text = start("2024-01-01T10:00:00.000000+01:00", 2000, 2000, Some(1))
        + &start("2024-02-01T10:00:00.000000+01:00", 2000, 0, Some(2));
    let whole = of(&text);
    for cut in 0..text.len() {
        let starts = of(&text[..cut]);
        assert!(starts.len() <= 2, "{cut}");
        for (start, known) in starts.iter().zip(&whole) {
            assert!(start.got.landing == Landing::Unknown || start.got == known.got, "{cut}");
        }
        assert!(of(&text[cut..]).len() <= 2, "{cut}");
    }
}

/// Every sample of the releases is found again in one log with all of them, whatever lies between.
#[test]
fn starts_of_all_releases_in_one_log() {
    let noise = b"Thread 1 advanced to log sequence 4711 (LGWR switch)\n".repeat(20_000);
    for name in names() {
        let sample = log(&name);
        let Some(alone) = last_start(&sample).filter(|start| start.mode.is_some()) else { continue };
        let all = [&sample[..], b"\n", &noise[..], &sample[..], b"\n", &noise[..]].concat();
        let starts = starts_in(&mut Cursor::new(&all), MAX_STARTS, &mut { u64::MAX }).unwrap();
        assert!(starts.len() >= 2, "{name}");
        assert_eq!(starts[0], alone, "{name}");
        let count = starts.len() / 2;
        assert_eq!(starts[count].page_sizes, alone.page_sizes, "{name}");
    }
}

/// Rotated files have the starts before.
#[test]
fn a_log_and_its_rotated_files_are_one_history() {
    let trace = "u01/app/oracle/diag/rdbms/orcl/orcl/trace";
    let (tree, root) = tree(&[
        (&format!("{trace}/alert_orcl.log"), &start("2013-03-05T10:00:00.000000+01:00", 20, 0, Some(30))),
        (&format!("{trace}/alert_orcl.log.1"), &start("2013-02-04T10:00:00.000000+01:00", 20, 20, Some(20))),
        (&format!("{trace}/alert_orcl.log-20130104"), &start("2013-01-03T10:00:00.000000+01:00", 20, 20, Some(10))),
        (&format!("{trace}/alert_orcl.log.bak"), &start("2012-01-03T10:00:00.000000+01:00", 20, 20, Some(1))),
    ]);
    let files = InstanceFiles::own(&root);
    let mut notes = Notes::default();
    let starts = hugepage_oracle::log_history::starts_in(&files, &format!("/{trace}/alert_orcl.log"), &mut notes);
    let seen: Vec<_> = starts.iter().map(|one| (one.start.pmon, one.got.landing, one.lost.is_some())).collect();
    assert_eq!(
        seen,
        [(Some(10), Landing::Hugetlb, false), (Some(20), Landing::Hugetlb, false), (Some(30), Landing::Base, true)]
    );
    assert!(notes.into_vec().is_empty());
    drop(tree);
}

/// Prints what 500 MB cost; asserts only what was found, and that of more starts than are kept the last are.
#[test]
fn a_log_of_500_megabytes() {
    let noise =
        "2024-01-01T10:00:00.000000+01:00\nThread 1 advanced to log sequence 4711 (LGWR switch),  current SCN: 1\n"
            .repeat(30_000);
    let mut file = tempfile::tempfile().unwrap();
    let mut written = 0;
    let mut count = 0_u64;
    while written < 500 << 20 {
        let (day, month, year) = (count % 28 + 1, count / 28 % 12 + 1, 2000 + count / 336);
        let text = start(&format!("{year}-{month:02}-{day:02}T10:00:00.000000+01:00"), 2000, 2000, Some(7));
        written += std::io::Write::write(&mut file, (text + &noise).as_bytes()).unwrap();
        count += 1;
    }
    let begun = Instant::now();
    let mut left = u64::MAX;
    let starts = starts_in(&mut file, MAX_STARTS, &mut left).unwrap();
    println!("{count} starts in {} MB: {:?}", written >> 20, begun.elapsed());
    assert_eq!(starts.len() as u64, count.min(MAX_STARTS as u64));
    assert!(u64::MAX - left >= written as u64);
    // No more is searched than may be.
    let mut left = 8 << 20;
    let few = starts_in(&mut file, MAX_STARTS, &mut left).unwrap();
    assert!(left == 0 && few.len() < starts.len() && few[..] == starts[..few.len()]);
}
