//! The last start in an alert log, of text or XML as the bytes have it, with all that is concluded from it.
#![no_main]

use std::io::Cursor;

use hugepage_oracle::readers::alert_log::last_start_in;
use hugepage_oracle::readers::startup::{failed, is_of, landed};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let start = last_start_in(&mut Cursor::new(bytes), &mut { u64::MAX }).expect("memory can be read");
    if let Some(start) = &start {
        let _ = (landed(start), failed(start), is_of(start, 1, 1_700_000_000), is_of(start, 1, i64::MIN));
    }
    // What follows a log does not change its last start, if it is not about one.
    if !bytes.contains(&b'<') && bytes.ends_with(b"PMON started with pid=2, OS id=1211\n") {
        let longer = [bytes, b"Thread 1 advanced to log sequence 2\n"].concat();
        assert_eq!(last_start_in(&mut Cursor::new(longer), &mut { u64::MAX }).expect("memory can be read"), start);
    }
});
