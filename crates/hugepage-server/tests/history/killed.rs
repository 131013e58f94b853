//! SIGKILL at any moment, while lines are added and the file is cut.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hugepage_server::history::HistoryFile;

use super::{new_file, numbers, read, record};

const FILE: &str = "PG_HUGEPAGES_TEST_HISTORY";
const KEPT: usize = 20;

#[test]
#[ignore = "run by killed_at_any_moment as the process that is killed"]
fn victim() {
    let file = HistoryFile::at(std::env::var(FILE).unwrap());
    file.trim(KEPT).unwrap();
    let last = file
        .last(|_| true)
        .unwrap()
        .map_or(0, |record| record.generation);
    for number in last + 1..=i64::MAX {
        file.append(&record(number)).unwrap();
        if number % 10 == 0 {
            file.trim(KEPT).unwrap();
        }
    }
}

#[test]
fn killed_at_any_moment() {
    let (_directory, file) = new_file();
    let mut last = 0;
    for round in 0..100 {
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::victim", "--ignored"])
            .env(FILE, file.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while file
            .last(|_| true)
            .unwrap()
            .is_none_or(|record| record.generation == last)
        {
            if victim.try_wait().unwrap().is_some() {
                let stdout = victim.wait_with_output().unwrap().stdout;
                panic!(
                    "the victim ended by itself: {}",
                    String::from_utf8_lossy(&stdout)
                );
            }
            assert!(Instant::now() < deadline, "the victim writes nothing");
        }
        // Any moment will do, so all are tried.
        std::thread::sleep(Duration::from_micros(round * 7919 % 3000));
        victim.kill().unwrap();
        victim.wait().unwrap();

        let found = numbers(&file);
        assert!(
            found.windows(2).all(|pair| pair[1] == pair[0] + 1),
            "no line is lost or doubled: {found:?}"
        );
        assert!(*found.last().unwrap() > last);
        last = *found.last().unwrap();
        let damaged = read(&file).damaged;
        let torn = !std::fs::read(file.path()).unwrap().ends_with(b"\n");
        assert!(damaged <= torn.into(), "{damaged} damaged, torn: {torn}");
        assert!(found.len() < KEPT + 10 + 1);
    }
}
