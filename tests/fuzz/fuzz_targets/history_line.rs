//! A line of the history: as it is, and with the checksum that makes its JSON count.
#![no_main]

use hugepage_assess::history::record::Record;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = Record::from_line(bytes);
    let whole = [format!("{:08x} ", crc32fast::hash(bytes)).as_bytes(), bytes].concat();
    match Record::from_line(&whole) {
        Some(Some(record)) => {
            let line = record.to_line();
            let again = Record::from_line(line.trim_end_matches('\n').as_bytes());
            assert_eq!(again, Some(Some(record)));
        }
        // Of another version.
        Some(None) => {}
        None => panic!("its checksum is right"),
    }
});
