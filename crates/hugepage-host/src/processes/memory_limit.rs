//! The memory besides huge pages that control groups allow a process: `memory.max` (cgroup v2), or `memory.limit_in_bytes` (v1).

use hugepage_assess::model::Segment;
use hugepage_kernel::cgroups::cgroup::{CgroupLimits, MIN_UNLIMITED, below, levels};
use hugepage_kernel::host::mounts::{self, Mount};
use hugepage_kernel::notes::Notes;
use hugepage_kernel::{Bytes, Root};

/// The lowest limit of the groups that `pid` is in; `None` if there is none, or none can be seen. `mounted`: the lines of [`mounts::PATH`].
pub fn of_process(root: &Root, pid: i32, mounted: &str) -> Option<Bytes> {
    let memberships = root.read_short(&format!("/proc/{pid}/cgroup"), str::to_owned).ok()?;
    let limits = memberships.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let is_v1 = controllers.split(',').any(|name| name == "memory");
        if !is_v1 && !controllers.is_empty() {
            return None;
        }
        let is_of_it = |mount: &Mount| match is_v1 {
            true => mount.kind == "cgroup" && mount.has("memory"),
            false => mount.kind == "cgroup2",
        };
        let mount = mounts::parse(mounted).find(is_of_it)?;
        let file = if is_v1 { "memory.limit_in_bytes" } else { "memory.max" };
        let below = below(&mount.root, path)?;
        let limit = |level: &str| {
            let level = if level.is_empty() { String::new() } else { format!("/{level}") };
            let text = root.read_short(&format!("{}{level}/{file}", mount.point), str::to_owned).ok()?;
            text.trim().parse().ok().filter(|limit| *limit < MIN_UNLIMITED).map(Bytes)
        };
        levels(&below).filter_map(limit).min()
    });
    limits.min()
}

/// Bounds what the next start asks for of a server whose `segment` has no huge pages: a mapping takes no page until a process touches
/// it, so its size alone proves nothing. `memory`, `limits`: what its control group lets it have of memory, and of huge pages.
pub fn bound_need(memory: Option<Bytes>, limits: Option<&CgroupLimits>, segment: &mut Segment, notes: &mut Notes) {
    let of_pages =
        limits.iter().flat_map(|limits| limits.fault.iter().chain(&limits.reservation)).map(|limit| limit.limit).min();
    // Without a limit of their own, huge pages may be more than the limit on memory: nobody knows by how much.
    let most = memory.map(|memory| of_pages.map_or(memory, |pages| pages.max(memory)));
    let Some(most) = most.filter(|most| segment.to_reserve > *most) else { return };
    notes.add(format!(
        "it maps {} of shared memory, and its control group lets it have {most}, which are taken as its need",
        segment.size
    ));
    segment.to_reserve = most;
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_lowest_of_all_levels() {
        let tree = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let root = Root::at(tree.path());
        let limit = || of_process(&root, 7, &root.read(mounts::PATH).unwrap());
        write("proc/7/cgroup", "0::/a/b\n");
        write("proc/self/mountinfo", "1 2 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        assert_eq!(limit(), None);
        for (level, text, expected) in
            [("a/b", "max", None), ("a", "4096", Some(4096)), ("a/b", "8192", Some(4096)), ("a", "max", Some(8192))]
        {
            write(&format!("sys/fs/cgroup/{level}/memory.max"), text);
            assert_eq!(limit(), expected.map(Bytes), "{level} {text}");
        }
        write("proc/7/cgroup", "5:memory:/c\n1:name=systemd:/a\n");
        write("proc/self/mountinfo", "1 2 0:1 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
        write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
        assert_eq!(limit(), None);
        write("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "12288");
        assert_eq!(limit(), Some(Bytes(12288)));
    }
}
