//! What bounds the need of a server that has no huge pages: a mapping takes no page until it is touched, so its size alone proves
//! nothing, and no start can have more than the control group lets it have.

use hugepage_assess::model::Segment;
use hugepage_kernel::cgroups::cgroup::CgroupLimits;
use hugepage_kernel::cgroups::memory_limit;
use hugepage_kernel::notes::Notes;
use hugepage_kernel::{Bytes, Root};

/// Bounds what the next start of the server `pid` asks for, unless its `segment` has huge pages. `limits`: those on huge pages.
pub(super) fn bound(root: &Root, pid: i32, limits: Option<&CgroupLimits>, segment: &mut Segment, notes: &mut Notes) {
    if segment.in_huge_pages > Bytes(0) {
        return;
    }
    let Some(most) = limit_of_group(root, pid, limits).filter(|most| segment.to_reserve > *most) else { return };
    notes.add(format!(
        "process {pid} maps {} of shared memory, and its control group lets it have {most}, which are taken as its need",
        segment.size
    ));
    segment.to_reserve = most;
}

/// The memory that the control group of `pid` lets it have, by its limits on memory and on huge pages; `None` without any.
fn limit_of_group(root: &Root, pid: i32, limits: Option<&CgroupLimits>) -> Option<Bytes> {
    let of_pages =
        limits.iter().flat_map(|limits| limits.fault.iter().chain(&limits.reservation)).map(|limit| limit.limit).min();
    // Without a limit of their own, huge pages may be more than the limit on memory: nobody knows by how much.
    memory_limit::of_process(root, pid).map(|memory| of_pages.map_or(memory, |pages| pages.max(memory)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::survey;

    /// A server that maps 17 GB in base pages, with a limit of its control group.
    fn need(memory_max: &str) -> (u64, usize) {
        let tree = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let auxv: Vec<u8> = [6u64, 4096, 0, 0].into_iter().flat_map(u64::to_le_bytes).collect();
        write("proc/self/auxv", str::from_utf8(&auxv).unwrap());
        write("proc/meminfo", "MemTotal: 67108864 kB\nHugepagesize: 2048 kB\n");
        write("proc/self/mountinfo", "1 2 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        for (name, value) in
            [("nr_hugepages", 0), ("free_hugepages", 0), ("resv_hugepages", 0), ("surplus_hugepages", 0)]
        {
            write(&format!("sys/kernel/mm/hugepages/hugepages-2048kB/{name}"), &format!("{value}\n"));
        }
        write("proc/7/cmdline", "/usr/bin/postgres\0-D\0/data\0");
        write("proc/7/status", "PPid:\t1\n");
        write("proc/7/cgroup", "0::/a\n");
        write("proc/7/maps", "7f0000000000-7f0440000000 rw-s 00000000 00:01 1028 /dev/zero (deleted)\n");
        write("sys/fs/cgroup/a/memory.max", memory_max);
        let survey = survey(&Root::at(tree.path()), 20);
        let notes =
            survey.instances[0].notes.iter().filter(|note| note.contains("which are taken as its need")).count();
        (survey.instances[0].need().pages.0, notes)
    }

    #[test]
    fn only_what_is_real() {
        assert_eq!(need("max"), (17 << 9, 0));
        assert_eq!(need("34359738368"), (17 << 9, 0));
        assert_eq!(need("2147483648"), (1024, 1), "its group never lets it have more");
    }
}
