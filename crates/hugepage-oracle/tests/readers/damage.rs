//! Logs that are cut, mixed with rubbish, or nothing but that.

use hugepage_oracle::readers::startup::{is_of, landed};
use proptest::prelude::*;

use super::*;

/// A log ends anywhere while it is written. What is said of the landing is final or not yet known, never wrong.
#[test]
fn every_beginning_of_every_log() {
    for name in names() {
        let log = log(&name);
        let whole = last_start(&log).unwrap();
        for end in 0..log.len() {
            let Some(start) = last_start(&log[..end]) else {
                continue;
            };
            assert!(
                [None, landed(&whole)].contains(&landed(&start)),
                "{name} up to {end}"
            );
            assert!(
                expected(&start)
                    .iter()
                    .all(|found| expected(&whole).contains(found)),
                "{name} up to {end}"
            );
            if end == log.len() - 1 {
                assert_eq!(
                    (start.at, start.mode),
                    (whole.at.clone(), whole.mode.clone()),
                    "{name}"
                );
            }
        }
    }
}

/// Of a log that was cut at its beginning, what is left is not mistaken for another start.
#[test]
fn ends_of_every_log() {
    for name in names() {
        let log = log(&name);
        let whole = last_start(&log).unwrap();
        for begin in (1..log.len()).step_by(7) {
            let Some(start) = last_start(&log[begin..]) else {
                continue;
            };
            assert!(
                start.at.is_none() || start.at == whole.at,
                "{name} from {begin}"
            );
            assert!(
                [None, whole.pmon].contains(&start.pmon),
                "{name} from {begin}"
            );
        }
    }
}

#[test]
fn the_last_start_counts_and_nothing_of_those_before() {
    for (old, new) in [
        ("19.22-mixed.log", "19.22-all.log"),
        ("19.22-all.log", "19.22-mixed.log"),
    ] {
        let both = [log(old), log(new)].concat();
        assert_eq!(last_start(&both), last_start(&log(new)), "{old}, {new}");
    }
    let (old, new) = (log("11.2.0.4-start.log"), log("18.4-none.log"));
    let start = last_start(&[old, new.clone()].concat()).unwrap();
    assert_eq!(facts(&start), facts(&last_start(&new).unwrap()));
}

/// What somebody writes about a start is none.
#[test]
fn only_the_beginning_of_a_line_starts_an_instance() {
    let mut text = log("19.22-all.log");
    text.extend(b"he said: Starting ORACLE instance (normal) (OS id: 1)\n");
    assert_eq!(last_start(&text), last_start(&log("19.22-all.log")));
    text.extend(b"Tue Apr 17 11:02:03 2012 Starting ORACLE instance (restrict)\n");
    let start = last_start(&text).unwrap();
    assert_eq!(facts(&start), ["at 2012-04-17T11:02:03Z", "mode restrict"]);
}

#[test]
fn other_line_ends_and_bytes_that_are_no_text() {
    for name in names() {
        let log = log(&name);
        let whole = last_start(&log).unwrap();
        let text = String::from_utf8(log.clone()).unwrap();
        let windows = text.replace('\n', "\r\n");
        assert_eq!(
            last_start(windows.as_bytes()).unwrap(),
            whole,
            "{name} with CR LF"
        );
        let noise = b"\xff\xfe\x00 G\xfc\xdftig \xe9\n";
        let noisy = [noise.to_vec(), log, noise.repeat(3)].concat();
        assert_eq!(facts(&last_start(&noisy).unwrap()), facts(&whole), "{name}");
    }
}

#[test]
fn nothing_about_a_start_is_none() {
    for bytes in [
        &b""[..],
        b"\n\n",
        b"\0",
        b"Tue Apr 17 11:02:03 2012\n",
        b"Thread 1 advanced to log sequence 2\n",
    ] {
        assert_eq!(last_start(bytes), None, "{bytes:?}");
    }
}

#[test]
fn a_start_of_which_nothing_is_known_is_a_start() {
    for text in [
        "Starting ORACLE instance (",
        "x\nStarting ORACLE instance ()\n\n",
    ] {
        assert_eq!(
            facts(&last_start(text.as_bytes()).unwrap()),
            ["mode "],
            "{text}"
        );
    }
}

/// What logs are made of, in any order.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let text = prop::sample::select(vec![
        "Starting ORACLE instance (",
        "normal) (OS id: 99999999999999)",
        "\n",
        "\r\n",
        " ",
        "2024-02-11T04:00:01.210600+01:00",
        "Wed Aug 12 09:26:27 2015",
        "18446744073709551615",
        "99999999999999999999999",
        " KB",
        "Dump of system resources acquired for SHARED GLOBAL AREA (SGA)\n",
        "  PAGESIZE  AVAILABLE_PAGES  EXPECTED_PAGES  ALLOCATED_PAGES  ERROR(s)\n",
        "  4K Configured 3 393219 NONE\n",
        " 2048K 0 18446744073709551615 1 ORA-1\n",
        "0K 0 0 0\n",
        "RECOMMENDATION:\n",
        "unused large pages by at least ",
        "process memlock (soft) limit to at least ",
        "System parameters with non-default values:\n",
        "  sga_max_size = ",
        "\"3G\"\n",
        "ERROR:",
        " : use_large_pages = \n",
        "ORA-27102: out of memory\n",
        "/dev/shm file system to be mounted for at least ",
        "PMON started with pid=2, OS id=",
    ]);
    let piece = prop_oneof![
        8 => text.prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..20),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    /// Whatever the file holds, the answer is one.
    #[test]
    fn no_log_is_too_odd(bytes in pieces()) {
        if let Some(start) = last_start(&bytes) {
            let _ = (facts(&start), is_of(&start, 1, i64::MAX), is_of(&start, 1, i64::MIN), is_of(&start, 1, 0));
            prop_assert!(start.errors.len() <= 16);
        }
    }
}

proptest! {
    /// Rubbish before a start changes nothing, wherever the borders of blocks fall.
    #[test]
    fn what_comes_before_does_not_matter(bytes in pieces(), filler in 0..70_000usize) {
        let mut log_with_noise = bytes;
        log_with_noise.extend(b"x".repeat(filler));
        log_with_noise.push(b'\n');
        let log = log("19.22-all.log");
        log_with_noise.extend(&log);
        prop_assert_eq!(last_start(&log_with_noise), last_start(&log));
    }
}
