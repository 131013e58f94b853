//! A log of a gigabyte takes no more memory than a small one, and no more reading than its last start is far from its
//! end.

use std::io::{self, Read, Seek, SeekFrom, Write};

use hugepage_oracle::readers::{self, alert_log};

use super::*;

#[path = "../../../hugepage-kernel/tests/most_resident/mod.rs"]
mod most_resident;

use most_resident::most_resident;

/// Lines that go on for `size` bytes, with `start` in their midst, made up while they are read.
struct Log {
    start: Vec<u8>,
    at: u64,
    size: u64,
    position: u64,
    taken: u64,
}

impl Log {
    const LINE: &[u8] = b"Thread 1 advanced to log sequence 31337 (LGWR switch)\n";

    fn new(at: u64, size: u64) -> Self {
        let at = at / Self::LINE.len() as u64 * Self::LINE.len() as u64;
        Self {
            start: log("19.22-all.log"),
            at,
            size,
            position: 0,
            taken: 0,
        }
    }

    fn byte(&self, position: u64) -> u8 {
        let behind = position
            .checked_sub(self.at)
            .map(|behind| usize::try_from(behind).unwrap());
        match behind.and_then(|behind| self.start.get(behind)) {
            Some(byte) => *byte,
            None => Self::LINE[usize::try_from(position % Self::LINE.len() as u64).unwrap()],
        }
    }
}

impl Read for Log {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = into
            .len()
            .min(usize::try_from(self.size - self.position).unwrap_or(usize::MAX));
        for (byte, position) in into[..count].iter_mut().zip(self.position..) {
            *byte = self.byte(position);
        }
        self.position += count as u64;
        self.taken += count as u64;
        Ok(count)
    }
}

impl Seek for Log {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = match to {
            SeekFrom::Start(position) => position.min(self.size),
            SeekFrom::End(0) => self.size,
            _ => unimplemented!("not needed"),
        };
        Ok(self.position)
    }
}

#[test]
fn no_more_is_read_than_is_needed() {
    for (at, size) in [
        (GIB - 20 * 1024, GIB),
        (GIB - 3 * MIB, GIB),
        (5000, 8 * MIB),
        (0, 8 * MIB),
    ] {
        let mut log = Log::new(at, size);
        let start = alert_log::last_start_in(&mut log, &mut { limit::ALERT_LOG })
            .unwrap()
            .unwrap();
        assert_eq!(start.pmon, Some(1211), "{at} of {size}");
        let least = size - log.at;
        assert!(
            log.taken < least + 2 * MIB,
            "{} bytes were read, {least} needed",
            log.taken
        );
    }
}

/// A start right across the border of two blocks, by every byte.
#[test]
fn a_start_is_found_at_every_place() {
    let start = log("19.22-all.log");
    let line = String::from_utf8_lossy(&start)
        .find("Starting ORACLE")
        .unwrap();
    let block = 256 << 10;
    for shift in 0..40 {
        let before = b"x".repeat(300);
        let behind = block - (start.len() - line) + shift - 20;
        let log = [&before[..], b"\n", &start, &b"y".repeat(behind)].concat();
        assert_eq!(last_start(&log).unwrap().pmon, Some(1211), "{shift}");
    }
}

/// Files with holes cost nothing to make: a gigabyte of zeros in one line, alone and with a start behind it.
#[test]
fn a_gigabyte_does_not_fill_memory() {
    const ENOUGH: u64 = 16 * MIB;
    let (directory, root) = tree(&[("log", "")]);
    let path = directory.path().join("log");
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.set_len(GIB).unwrap();
    let before = most_resident();
    assert_eq!(
        readers::last_start(&InstanceFiles::own(&root), "/log").unwrap(),
        None
    );
    file.write_all(b"\n").unwrap();
    file.write_all(&log("19.22-all.log")).unwrap();
    assert_eq!(
        readers::last_start(&InstanceFiles::own(&root), "/log")
            .unwrap()
            .unwrap()
            .pmon,
        Some(1211)
    );
    let more = most_resident() - before;
    assert!(more < ENOUGH, "{more} bytes more were resident");
}

/// What is further from the end than 64 MB of data is not searched.
#[test]
fn the_search_has_an_end() {
    let mut long = Log::new(5000, GIB);
    assert_eq!(
        alert_log::last_start_in(&mut long, &mut { limit::ALERT_LOG }).unwrap(),
        None
    );
    assert!(long.taken < 66 * MIB, "{} bytes were read", long.taken);
}
