//! What a process that reads or cuts a file needs does not depend on the file.

use std::fs;
use std::process::Command;

use hugepage_assess::history::Record;
use hugepage_server::history::HistoryFile;

use super::record;

#[path = "../../../hugepage-kernel/tests/most_resident/mod.rs"]
mod most_resident;

use most_resident::most_resident;

const FILE: &str = "PG_HUGEPAGES_TEST_LONG_HISTORY";
/// More than blocks and lines of 64 kB take, much less than the files.
const MOST: u64 = 4 << 20;

#[test]
#[ignore = "run by a_long_file_needs_no_more as the process that is measured"]
fn reader() {
    let file = HistoryFile::at(std::env::var(FILE).unwrap());
    let before = most_resident();
    assert!(
        file.last(|record| record.generation == 1)
            .unwrap()
            .is_none(),
        "it is far from the end"
    );
    let mut records = file.records().unwrap().unwrap();
    let count = records.by_ref().map(Result::unwrap).count();
    assert!(count >= 2);
    let damaged = records.damaged;
    assert_eq!(file.trim(count - 1).unwrap(), damaged);
    let more = most_resident() - before;
    assert!(
        more < MOST,
        "{more} bytes more for {count} records and {damaged} damaged lines"
    );
}

#[test]
fn a_long_file_needs_no_more() {
    let (first, last) = (record(1).to_line(), record(2).to_line());
    let long = Record {
        detail: Some("x".repeat(100 << 20)),
        ..record(3)
    }
    .to_line();
    let cases = [
        ("a long line", [&*first, &long, &last].concat()),
        ("a long line at the end", [&*first, &last, &long].concat()),
        ("100,000 records", [&*first, &last.repeat(100_000)].concat()),
    ];
    for (what, content) in cases {
        // On disk, for it is more than new_file has room for.
        let directory = tempfile::tempdir().unwrap();
        let file = HistoryFile::at(directory.path().join("pg_hugepages.history"));
        fs::write(file.path(), content).unwrap();
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "memory::reader", "--ignored"])
            .env(FILE, file.path())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{what}: {}",
            String::from_utf8_lossy(&output.stdout)
        );
    }
}
