//! log.xml: bytes inside of a message that starts an instance.
#![no_main]

use std::io::Cursor;

use hugepage_oracle::readers::alert_log::last_start_in;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let before = b"<msg time='2019-05-02T16:52:30.837+02:00' level='16'>\n <txt>Starting ORACLE instance (normal)\n";
    let message = [&before[..], bytes, b"\n </txt>\n</msg>\n"].concat();
    let start = last_start_in(&mut Cursor::new(message), &mut { u64::MAX }).expect("memory can be read");
    // Markup may leave nothing of the message; text can't.
    assert!(start.is_some() || bytes.iter().any(|byte| matches!(byte, b'<' | b'>' | b'&')));
});
