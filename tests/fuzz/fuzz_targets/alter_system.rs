//! The change of the spfile behind the last start of an alert log, of all its statements and of each.
#![no_main]

use hugepage_fuzz::with_files;
use hugepage_kernel::InstanceFiles;
use hugepage_oracle::readers::alert_log::changed_since_start;
use libfuzzer_sys::fuzz_target;

fn changed_in(log: &[u8]) -> Option<String> {
    with_files(&[("/log", log)], |root| {
        changed_since_start(&InstanceFiles::own(root), "/log", "orcl")
    })
    .expect("the log can be read")
}

fuzz_target!(|bytes: &[u8]| {
    let log = [b"Starting ORACLE instance (normal)\n", bytes].concat();
    if let Some(name) = changed_in(&log) {
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        assert!(!name.is_empty() && name.bytes().all(is_name), "{name:?}");
    }
});
