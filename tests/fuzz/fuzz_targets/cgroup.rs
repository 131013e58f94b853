//! /proc/self/cgroup and mountinfo, divided by the first zero byte, and the limits that they lead to.
#![no_main]

use hugepage_fuzz::with_files;
use hugepage_kernel::cgroups::cgroup::Hierarchy;
use hugepage_kernel::{Notes, PageSize};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let middle = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let (membership, mounts) = bytes.split_at(middle);
    let mounts = mounts.get(1..).unwrap_or_default();
    with_files(&[("/proc/self/cgroup", membership), ("/proc/self/mountinfo", mounts)], |root| {
        if let Ok(Some(hierarchy)) = Hierarchy::find(root) {
            let size = PageSize::from_kib(2048).expect("is not zero");
            let _ = hierarchy.limits(root, size, &mut Notes::default()).tightest();
        }
    });
});
