//! The changes of the spfile behind the last start of an alert log, of all its statements and of each.
#![no_main]

use hugepage_fuzz::with_files;
use hugepage_kernel::InstanceFiles;
use hugepage_oracle::readers::Parameters;
use hugepage_oracle::readers::alert_log::changes_since_start;
use hugepage_oracle::readers::parameters::ParameterChange;
use libfuzzer_sys::fuzz_target;

fn changes_in(log: &[u8]) -> Option<Vec<ParameterChange>> {
    with_files(&[("/log", log)], |root| changes_since_start(&InstanceFiles::own(root), "/log"))
        .expect("the log can be read")
}

fuzz_target!(|bytes: &[u8]| {
    let found = changes_in(bytes);
    let mut parameters = Parameters::default();
    for change in found.iter().flatten() {
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        assert!(!change.name.is_empty() && change.name.bytes().all(is_name), "{change:?}");
        parameters.change(change);
    }
    let _ = (parameters.sga_max_size(), parameters.memory_target());
    let text = String::from_utf8_lossy(bytes);
    for line in text.lines().filter(|line| !line.contains('\r')) {
        let log = format!("Starting ORACLE instance (normal)\n{}\n", line.trim());
        assert!(changes_in(log.as_bytes()).is_some_and(|changes| changes.len() <= 1), "{line:?}");
    }
});
