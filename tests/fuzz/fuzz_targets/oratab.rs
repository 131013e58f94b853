//! oratab, and the command lines of processes that may be Oracle's.
#![no_main]

use hugepage_oracle::readers::{OracleProcess, oratab, process};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    for entry in oratab::parse(&text) {
        assert!(entry.home.starts_with('/') || entry.home.is_empty());
        assert!(!entry.sid.is_empty());
    }
    if let Some(process) = OracleProcess::parse(&text) {
        assert!(text.contains(&process.instance.sid));
    }
    let _ = process::home_of(&text);
});
