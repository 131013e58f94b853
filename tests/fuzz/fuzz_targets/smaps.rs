//! /proc/PID/smaps and /proc/PID/status.
#![no_main]

use hugepage_fuzz::with_files;
use hugepage_kernel::mapping::{maps, smaps};
use hugepage_kernel::proc::process::ProcessStatus;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let _ = ProcessStatus::parse(&*text);
    let mappings: Vec<_> = text.lines().filter_map(maps::parse).take(4).collect();
    with_files(&[("/proc/self/smaps", bytes)], |root| {
        let usages =
            smaps::of_process(root, "self", &mappings, &mut || {}).expect("the file is there");
        assert_eq!(usages.len(), mappings.len());
    });
});
