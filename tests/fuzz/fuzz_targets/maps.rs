//! /proc/PID/maps, and the lists of segments and limits.
#![no_main]

use hugepage_fuzz::with_files;
use hugepage_kernel::mapping::maps;
use hugepage_kernel::memory::sysvipc;
use hugepage_kernel::proc::rlimit::memlock;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let _ = memlock(&text);
    for mapping in text.lines().filter_map(maps::parse) {
        assert!(mapping.size().0 > 0 && !mapping.name().contains('/'));
    }
    with_files(&[(maps::SELF, bytes), ("/proc/sysvipc/shm", bytes)], |root| {
        let _ = sysvipc::read(root);
        for mapping in maps::read(root, maps::SELF, |mapping| mapping.shared).unwrap_or_default() {
            assert!(mapping.size().0 > 0);
        }
    });
});
