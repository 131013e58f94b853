//! Damage costs the damaged lines and nothing else, and what is written afterwards is whole.

use std::fs;

use hugepage_assess::history::Record;
use hugepage_server::history::HistoryFile;
use proptest::prelude::*;

use super::{new_file, numbers, read, record};

const RECORDS: i64 = 4;

/// The whole file, and where each line begins, its end at last.
fn lines() -> (Vec<u8>, Vec<usize>) {
    let mut bytes = Vec::new();
    let mut starts = vec![0];
    for number in 0..RECORDS {
        bytes.extend(record(number).to_line().bytes());
        starts.push(bytes.len());
    }
    (bytes, starts)
}

/// What holds of every file, damaged or not.
fn assert_goes_on(file: &HistoryFile, expected: &[i64], damaged: usize) {
    let number = |record: Option<Record>| record.map(|record| record.generation);
    assert_eq!(
        (numbers(file).as_slice(), read(file).damaged),
        (expected, damaged)
    );
    assert_eq!(
        number(file.last(|_| true).unwrap()),
        expected.last().copied()
    );

    file.append(&record(99)).unwrap();
    let more = [expected, &[99]].concat();
    assert_eq!(
        (&numbers(file), read(file).damaged),
        (&more, damaged),
        "an append begins its own line"
    );

    assert_eq!(
        file.trim(100).unwrap(),
        damaged,
        "reported once: trim drops it and says how much"
    );
    assert_eq!((&numbers(file), read(file).damaged), (&more, 0));
    assert_eq!(file.trim(100).unwrap(), 0);
}

#[test]
fn cut_at_every_byte() {
    let (bytes, starts) = lines();
    let (_directory, file) = new_file();
    for cut in 0..=bytes.len() {
        fs::write(file.path(), &bytes[..cut]).unwrap();
        // A line that lacks nothing but its line feed is whole.
        let whole = starts[1..].iter().filter(|&&end| cut + 1 >= end).count();
        let rest = cut > starts[whole];
        let expected: Vec<_> = (0..RECORDS).take(whole).collect();
        assert_goes_on(&file, &expected, rest.into());
    }
}

#[test]
fn another_byte_at_every_place() {
    let (bytes, starts) = lines();
    let (_directory, file) = new_file();
    for place in 0..bytes.len() {
        for other in [0, b'\n', b'x', 0xff]
            .into_iter()
            .filter(|&other| other != bytes[place])
        {
            let mut damaged = bytes.clone();
            damaged[place] = other;
            fs::write(file.path(), damaged).unwrap();
            // Without its line feed a line is one with the next, or still whole where there is none.
            let line = starts.iter().rposition(|&start| start <= place).unwrap();
            let joined = bytes[place] == b'\n';
            let lost = line..line + 1 + usize::from(joined);
            let expected: Vec<_> = (0..RECORDS)
                .filter(|&n| !lost.contains(&usize::try_from(n).unwrap()))
                .collect();
            let read = read(&file);
            assert_eq!(numbers(&file), expected, "{other} at {place}");
            assert!((1..=2).contains(&read.damaged));
        }
    }
}

#[test]
fn garbage_put_in_at_every_place() {
    let (bytes, starts) = lines();
    let (_directory, file) = new_file();
    for garbage in [&b"\n\xff\0{\"v\":1}\n"[..], b"0", b"\0\0\0\0"] {
        for place in 0..=bytes.len() {
            fs::write(
                file.path(),
                [&bytes[..place], garbage, &bytes[place..]].concat(),
            )
            .unwrap();
            let own_lines = garbage.starts_with(b"\n");
            let hit = |number: i64| {
                let line = usize::try_from(number).unwrap();
                let (first, end) = (starts[line], starts[line + 1] - 1);
                // Before its first byte, only what is no line of its own becomes part of the line; the same at its end.
                if own_lines {
                    first < place && place < end
                } else {
                    first <= place && place <= end
                }
            };
            let expected: Vec<_> = (0..RECORDS).filter(|&number| !hit(number)).collect();
            assert_eq!(numbers(&file), expected, "{garbage:?} at {place}");
        }
    }
}

#[test]
fn a_line_of_another_version_is_neither_shown_nor_damaged_nor_dropped() {
    let (_directory, file) = new_file();
    let mut newer = record(1);
    newer.v += 1;
    fs::write(file.path(), [record(0).to_line(), newer.to_line()].concat()).unwrap();
    assert_eq!(file.last(|_| true).unwrap(), Some(record(0)));
    assert_goes_on(&file, &[0], 0);
    assert!(
        fs::read_to_string(file.path())
            .unwrap()
            .contains(&newer.to_line())
    );
}

/// A record whose line has `bytes` bytes, the line feed among them.
fn line_of(number: i64, bytes: usize) -> String {
    let line = Record {
        detail: Some(String::new()),
        ..record(number)
    }
    .to_line()
    .len();
    Record {
        detail: Some("x".repeat(bytes.saturating_sub(line))),
        ..record(number)
    }
    .to_line()
}

#[test]
fn a_line_of_more_than_64_kb_is_damage_wherever_it_stands() {
    for (bytes, is_whole) in [
        (64 << 10, true),
        ((64 << 10) + 1, true),
        ((64 << 10) + 2, false),
        (1 << 20, false),
    ] {
        for place in 0..4 {
            let mut all: Vec<_> = (0..3).map(|number| record(number).to_line()).collect();
            all.insert(place, line_of(9, bytes));
            let mut expected = vec![0, 1, 2];
            expected.splice(place..place, is_whole.then_some(9));
            for end in ["", "\n"] {
                let (_directory, file) = new_file();
                fs::write(file.path(), all.concat().trim_end().to_owned() + end).unwrap();
                assert_goes_on(&file, &expected, usize::from(!is_whole));
            }
        }
    }
}

#[test]
fn empty_lines_are_damage() {
    let (_directory, file) = new_file();
    let lines = [
        record(0).to_line(),
        "\n\n".to_owned(),
        record(1).to_line(),
        "\n".to_owned(),
    ]
    .concat();
    fs::write(file.path(), lines).unwrap();
    assert_goes_on(&file, &[0, 1], 3);
}

/// A start waits for the search for the last record. What is longer than all records of a server is none of them.
#[test]
fn the_last_record_is_searched_near_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let file = HistoryFile::at(directory.path().join("pg_hugepages.history"));
    for (megabytes, found) in [(7, Some(record(0))), (9, None)] {
        for line in ["\n".to_owned(), "x".repeat(99) + "\n"] {
            fs::write(
                file.path(),
                record(0).to_line() + &line.repeat((megabytes << 20) / line.len()),
            )
            .unwrap();
            assert_eq!(
                file.last(|_| true).unwrap(),
                found,
                "{megabytes} MB of lines with {} bytes",
                line.len()
            );
        }
    }
    // The worker removes them.
    assert!(file.trim(100).unwrap() > 90_000);
    assert_eq!(file.last(|_| true).unwrap(), Some(record(0)));
}

#[test]
fn a_record_that_no_reader_takes_is_not_written() {
    let (_directory, file) = new_file();
    file.append(&record(0)).unwrap();
    let long = Record {
        detail: Some("x".repeat(64 << 10)),
        ..record(1)
    };
    let error = file.append(&long).unwrap_err().to_string();
    assert!(
        error.starts_with("could not write history file") && error.contains("64 kB"),
        "{error}"
    );
    assert_goes_on(&file, &[0], 0);
}

#[test]
fn trim_keeps_the_last() {
    for (has, keep) in [(0, 5), (4, 5), (5, 5), (6, 5), (50, 5), (50, 1)] {
        let (directory, file) = new_file();
        (0..has).for_each(|number| file.append(&record(number)).unwrap());
        file.trim(keep).unwrap();
        let kept = i64::try_from(keep).unwrap();
        assert_eq!(
            numbers(&file),
            ((has - kept).max(0)..has).collect::<Vec<_>>()
        );
        assert!(
            fs::read_dir(directory.path()).unwrap().count() <= 1,
            "nothing lies about"
        );
    }
}

#[test]
fn what_a_crash_left_of_a_trim_is_not_in_the_way() {
    let (directory, file) = new_file();
    (0..10).for_each(|number| file.append(&record(number)).unwrap());
    fs::write(directory.path().join("pg_hugepages.history.new"), "half").unwrap();
    file.trim(3).unwrap();
    assert_eq!(numbers(&file), [7, 8, 9]);
}

/// What a file may hold: records, some with a line that is too long, and garbage.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let length = prop_oneof![9 => 0..300usize, 1 => 60_000..700_000usize];
    let whole = (0..20i64, length).prop_map(|(number, length)| {
        let long = Record {
            detail: Some("x".repeat(length)),
            ..record(number)
        };
        long.to_line().into_bytes()
    });
    let garbage = prop::collection::vec(any::<u8>(), 0..100);
    prop_oneof![6 => whole, 1 => garbage, 1 => Just(b"\n".to_vec())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A search finds the last of all records.
    #[test]
    fn last_is_the_last_of_all(pieces in prop::collection::vec(piece(), 0..12), wanted in 0..20i64) {
        let (_directory, file) = new_file();
        fs::write(file.path(), pieces.concat()).unwrap();
        let all = read(&file).records;
        let last = file.last(|_| true).unwrap();
        prop_assert_eq!(last.as_ref(), all.last());
        let is_wanted = |record: &Record| record.generation == wanted;
        let last = file.last(is_wanted).unwrap();
        prop_assert_eq!(last.as_ref(), all.iter().rfind(|record| is_wanted(record)));
    }
}

#[test]
fn the_last_is_found_among_long_lines() {
    let (_directory, file) = new_file();
    let line_of = |number, bytes| line_of(number, bytes).into_bytes();
    // Lines that are as long as a line may be, and longer.
    for bytes in [1 << 10, (64 << 10) - 1, 64 << 10, (64 << 10) + 1] {
        for garbage in [0, 1, 64 << 10, 300_000] {
            let mut all = line_of(0, 1000);
            all.extend(vec![b'x'; garbage]);
            all.extend(
                [
                    b"\n".to_vec(),
                    line_of(1, bytes),
                    line_of(2, bytes),
                    line_of(3, 1000),
                ]
                .concat(),
            );
            fs::write(file.path(), &all).unwrap();
            let found = |number| {
                file.last(|record| record.generation == number)
                    .unwrap()
                    .map(|record| record.generation)
            };
            let at = format!("{bytes} bytes, {garbage} of garbage");
            assert_eq!(
                [0, 1, 2, 3, 4].map(found),
                [Some(0), Some(1), Some(2), Some(3), None],
                "{at}"
            );
            for most in [
                0,
                999,
                1000,
                1001,
                1000 + bytes as u64,
                all.len() as u64 - 1,
                all.len() as u64,
            ] {
                let records = || file.records().unwrap().unwrap();
                let read = records().read(most).unwrap().records;
                let found = records()
                    .last(most, |record| record.generation != 3)
                    .unwrap();
                assert_eq!(
                    found,
                    read.into_iter().rfind(|record| record.generation != 3),
                    "the last {most}, {at}"
                );
            }
        }
    }
}
