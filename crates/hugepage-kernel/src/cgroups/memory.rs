//! What the memory controller of cgroups leaves a process, v1 and v2 (admin-guide/cgroup-v2, cgroup-v1/memory).

use crate::cgroups::cgroup::{Version, at, below, levels, limit, membership};
use crate::fields::first_number;
use crate::host::mounts;
use crate::{Bytes, ReadError, Root};

/// The memory that one limit leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryRoom {
    /// The file of the limit.
    pub path: String,
    /// `memory.max` or `memory.high`, of v1 `memory.limit_in_bytes`.
    pub limit: Bytes,
    /// The limit less what is used, with the inactive file pages, which the kernel frees first.
    pub available: Bytes,
}

/// The names of the limits, of the usage, and of the inactive file pages in `memory.stat`.
type Names = (&'static [&'static str], &'static str, &'static str);

const V1: Names = (
    &["memory.limit_in_bytes"],
    "memory.usage_in_bytes",
    "total_inactive_file ",
);
const V2: Names = (
    &["memory.max", "memory.high"],
    "memory.current",
    "inactive_file ",
);

/// The limits above the process `pid`, those of its own group first. An error if its group is not among what is mounted here.
pub fn memory_rooms(root: &Root, pid: i32) -> Result<Vec<MemoryRoom>, ReadError> {
    let file = format!("/proc/{pid}/cgroup");
    let memberships = root.read(&file)?;
    let Some((version, path)) = membership(&memberships, "memory") else {
        return Ok(Vec::new());
    };
    let outside = || root.content(&file, "its cgroup is outside what is mounted");
    let mount = mounts::read(root)?
        .into_iter()
        .find(|mount| version.is_at(mount, "memory"))
        .ok_or_else(outside)?;
    let path = below(&mount.root, path).ok_or_else(outside)?;
    let names = if version == Version::V1 { V1 } else { V2 };
    let mut rooms = Vec::new();
    for level in levels(&path) {
        let directory = at(&mount.point, level);
        for name in names.0 {
            rooms.extend(room(root, &directory, name, names)?);
        }
    }
    Ok(rooms)
}

/// What the limit `name` of the group `directory` leaves; `None` if it is no limit.
fn room(
    root: &Root,
    directory: &str,
    name: &str,
    (_, usage, inactive): Names,
) -> Result<Option<MemoryRoom>, ReadError> {
    let path = format!("{directory}/{name}");
    let Some(limit) = limit(root, &path)? else {
        return Ok(None);
    };
    let used = Bytes(root.read_number(&format!("{directory}/{usage}"))?);
    let inactive = root.read_short(&format!("{directory}/memory.stat"), |text| {
        let number = text.lines().find_map(|line| line.strip_prefix(inactive));
        first_number(number?.as_bytes())
    })?;
    let freed = Bytes(inactive.unwrap_or(0)).min(used);
    Ok(Some(MemoryRoom {
        path,
        limit,
        available: limit.saturating_sub(used.saturating_sub(freed)),
    }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A tree of files, and what is found for the process 7.
    fn found(files: &[(&str, &str)]) -> Result<Vec<(String, u64, u64)>, ReadError> {
        let tree = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let rooms = memory_rooms(&Root::at(tree.path()), 7)?;
        Ok(rooms
            .into_iter()
            .map(|room| (room.path, room.limit.0, room.available.0))
            .collect())
    }

    #[test]
    fn levels_with_limits() {
        const MOUNT: &str = "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let files = [
            ("proc/self/mountinfo", MOUNT),
            ("proc/7/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/b/memory.max", "1000\n"),
            ("sys/fs/cgroup/a/b/memory.high", "900\n"),
            ("sys/fs/cgroup/a/b/memory.current", "800\n"),
            (
                "sys/fs/cgroup/a/b/memory.stat",
                "anon 5\ninactive_file 300\nactive_file 7\n",
            ),
            ("sys/fs/cgroup/a/memory.max", "max\n"),
            ("sys/fs/cgroup/a/memory.high", "max\n"),
        ];
        let own = |name: &str| format!("/sys/fs/cgroup/a/b/{name}");
        let expected = [
            (own("memory.max"), 1000, 500),
            (own("memory.high"), 900, 400),
        ];
        assert_eq!(found(&files).unwrap(), expected);
        let mut outside = files;
        outside[0].1 = "30 1 0:26 /c /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert!(found(&outside).is_err(), "what limits it is not seen");
        let without_usage = &files[..4];
        assert!(found(without_usage).is_err(), "no usage is not zero");
    }

    #[test]
    fn version_1() {
        let files = [
            (
                "proc/self/mountinfo",
                "30 1 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
            ),
            ("proc/7/cgroup", "6:cpu:/\n5:memory:/a\n0::/x\n"),
            ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000\n"),
            ("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "800\n"),
            (
                "sys/fs/cgroup/memory/a/memory.stat",
                "inactive_file 1\ntotal_inactive_file 50\n",
            ),
            (
                "sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
        ];
        let own = "/sys/fs/cgroup/memory/a/memory.limit_in_bytes".to_owned();
        assert_eq!(found(&files).unwrap(), [(own, 1000, 250)]);
        assert!(found(&files[1..2]).is_err(), "what limits it is not seen");
    }
}
