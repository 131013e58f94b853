//! The limits of memory cgroups, if they count huge pages: cgroup v2 mounted with `memory_hugetlb_accounting`
//! (Linux 6.6, admin-guide/cgroup-v2). A page is charged when it is first touched, not when it is reserved.

use serde::{Deserialize, Serialize};

use crate::host::mounts::Mount;
use crate::source::root::if_there;
use crate::{Bytes, ReadError, Root};

/// The mount option.
const ACCOUNTING: &str = "memory_hugetlb_accounting";

/// What happens beyond a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryLimitKind {
    /// `memory.max`: a touch of a huge page fails, by SIGBUS or EFAULT.
    Max,
    /// `memory.high`: processes are slowed down.
    High,
}

/// A limit of one level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryLimit {
    /// The file that sets it.
    pub path: String,
    /// What happens beyond the limit.
    pub kind: MemoryLimitKind,
    /// The bytes allowed.
    pub limit: Bytes,
    /// `memory.current`: what the cgroup uses, reclaimable memory included.
    pub current: Bytes,
    /// `anon` of `memory.stat`: private memory of all processes of the cgroup. `None` if there is no such line.
    pub private: Option<Bytes>,
    /// The huge pages of all sizes that its processes were promised or have touched. `None` if unknown.
    pub huge: Option<Bytes>,
}

impl MemoryLimit {
    /// Whether a segment of `size` in huge pages, of a server that has `own` now, exceeds the limit beside all else.
    pub fn is_below(&self, own: Bytes, size: Bytes) -> bool {
        self.limit < self.need(own, size)
    }

    /// The bytes that the limit must allow for a segment of `size` in huge pages, of a server that has `own` now, beside
    /// what processes have privately and what others have in huge pages.
    pub fn need(&self, own: Bytes, size: Bytes) -> Bytes {
        let others = self.huge.unwrap_or_default().saturating_sub(own);
        size.saturating_add(self.private.unwrap_or_default()).saturating_add(others)
    }
}

/// Whether memory cgroups below `mount` count huge pages. `memberships`: /proc/PID/cgroup, which names a hierarchy of
/// version 1 that has the memory controller.
pub fn counts_huge_pages(mount: &Mount, memberships: &str) -> bool {
    let is_v1 = |line: &str| line.split(':').nth(1).is_some_and(|names| names.split(',').any(|name| name == "memory"));
    mount.kind == "cgroup2" && mount.has(ACCOUNTING) && !memberships.lines().any(is_v1)
}

/// Adds the limits of the cgroup in `directory`.
pub fn read_level(root: &Root, directory: &str, limits: &mut Vec<MemoryLimit>) -> Result<(), ReadError> {
    let mut found = Vec::with_capacity(2);
    for (kind, file) in [(MemoryLimitKind::Max, "memory.max"), (MemoryLimitKind::High, "memory.high")] {
        let path = format!("{directory}/{file}");
        let Some(text) = if_there(root.read(&path))? else { continue };
        match text.trim() {
            "max" => continue,
            number => match number.parse() {
                Ok(limit) => found.push((path, kind, Bytes(limit))),
                Err(_) => return Err(root.content(&path, format!("\"{number}\" is not a limit"))),
            },
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    let current = Bytes(root.read_number(&format!("{directory}/memory.current"))?);
    let stat = if_there(root.read(&format!("{directory}/memory.stat")))?.unwrap_or_default();
    let (private, huge) = (line_of(&stat, "anon"), huge_pages(root, directory, &stat, current)?);
    limits.extend(found.into_iter().map(|(path, kind, limit)| MemoryLimit {
        path,
        kind,
        limit,
        current,
        private,
        huge,
    }));
    Ok(())
}

/// A line of memory.stat.
fn line_of(stat: &str, name: &str) -> Option<Bytes> {
    let value = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    value.trim().parse().ok().map(Bytes)
}

/// The huge pages of the cgroup in `directory`: what the hugetlb controller says was promised or touched where it is
/// enabled, and `hugetlb` of memory.stat (Linux 6.13). On older kernels without that controller they are what
/// memory.current has beyond all that memory.stat names, in whole pages of 2 MB: each CPU may have charged 256 kB ahead.
fn huge_pages(root: &Root, directory: &str, stat: &str, current: Bytes) -> Result<Option<Bytes>, ReadError> {
    const PAGE: u64 = 2 << 20;
    let mut sums = [None, None];
    for name in root.list(directory)? {
        let Some(rest) = name.strip_prefix("hugetlb.") else { continue };
        let sum = match rest.split_once('.') {
            Some((_, "rsvd.current")) => &mut sums[0],
            Some((_, "current")) => &mut sums[1],
            _ => continue,
        };
        let bytes = root.read_number(&format!("{directory}/{name}"))?;
        *sum = Some(sum.unwrap_or(Bytes(0)).saturating_add(Bytes(bytes)));
    }
    let known = sums.into_iter().chain([line_of(stat, "hugetlb")]).flatten().max();
    let rest = || {
        let parts =
            ["anon", "file", "kernel"].map(|name| line_of(stat, name)).into_iter().collect::<Option<Vec<_>>>()?;
        let parts = parts.into_iter().chain(line_of(stat, "sock"));
        let rest = parts.fold(current, Bytes::saturating_sub);
        Some(Bytes(rest.0 / PAGE * PAGE))
    };
    Ok(known.or_else(rest))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// What others in the cgroup have in huge pages, from each of the three sources.
    #[test]
    fn huge_pages_of_others() {
        const MB: u64 = 1 << 20;
        let tree = tempfile::tempdir().unwrap();
        let write = |name: &str, text: String| {
            fs::create_dir_all(tree.path().join("group")).unwrap();
            fs::write(tree.path().join("group").join(name), text).unwrap();
        };
        let read = || {
            let mut limits = Vec::new();
            read_level(&Root::at(tree.path()), "/group", &mut limits).unwrap();
            limits.pop().unwrap()
        };
        write("memory.max", (400 * MB).to_string());
        write("memory.current", (361 * MB).to_string());
        write("memory.stat", format!("anon {}\nfile {}\n", 30 * MB, 10 * MB));
        assert_eq!((read().huge, read().private), (None, Some(Bytes(30 * MB))));
        write("memory.stat", format!("anon {}\nfile {}\nkernel {}\nsock 0\n", 30 * MB, 10 * MB, 20 * MB));
        assert_eq!(read().huge, Some(Bytes(300 * MB)), "a megabyte is no huge page");
        write("memory.stat", format!("anon {}\nhugetlb {}\n", 30 * MB, 298 * MB));
        assert_eq!(read().huge, Some(Bytes(298 * MB)));
        for (name, megabytes) in
            [("hugetlb.2MB.current", 298), ("hugetlb.2MB.rsvd.current", 310), ("hugetlb.1GB.rsvd.current", 0)]
        {
            write(name, (megabytes * MB).to_string());
        }
        let limit = read();
        assert_eq!(limit.huge, Some(Bytes(310 * MB)), "what is promised will be touched");
        // A server of 200 MB beside others with 110 MB, and 30 MB of private memory.
        assert_eq!(limit.need(Bytes(200 * MB), Bytes(200 * MB)), Bytes(340 * MB));
        assert!(limit.is_below(Bytes(200 * MB), Bytes(261 * MB)) && !limit.is_below(Bytes(200 * MB), Bytes(260 * MB)));
        // It has none of them yet.
        assert_eq!(limit.need(Bytes(0), Bytes(200 * MB)), Bytes(540 * MB));
    }
}
