//! The limits of memory cgroups where they count huge pages: cgroup v2 mounted with `memory_hugetlb_accounting`
//! (Linux 6.6, admin-guide/cgroup-v2). A page is charged when it is first touched, not when it is reserved.

use crate::read::Root;
use crate::read::mounts::Mount;
use crate::read::root::if_there;
use crate::{Bytes, ReadError};

/// The mount option.
const ACCOUNTING: &str = "memory_hugetlb_accounting";

/// What happens beyond a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryLimitKind {
    /// `memory.max`: a touch of a huge page fails, by SIGBUS or EFAULT.
    Max,
    /// `memory.high`: processes are slowed down.
    High,
}

/// A limit of one level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// The file that sets it.
    pub path: String,
    /// Which of the two it is.
    pub kind: MemoryLimitKind,
    /// The bytes allowed.
    pub limit: Bytes,
    /// `memory.current`: what the cgroup uses, reclaimable memory included.
    pub current: Bytes,
    /// `anon` of `memory.stat`: private memory of all processes of the cgroup. `None` if there is no such line.
    pub private: Option<Bytes>,
}

impl MemoryLimit {
    /// Whether a segment of `size` in huge pages and what processes have privately exceed it.
    pub fn is_below(&self, size: Bytes) -> bool {
        self.limit < self.need(size)
    }

    /// What it must allow for a segment of `size` in huge pages beside what processes have privately now.
    pub fn need(&self, size: Bytes) -> Bytes {
        size.saturating_add(self.private.unwrap_or_default())
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
    for (kind, file) in [(MemoryLimitKind::Max, "memory.max"), (MemoryLimitKind::High, "memory.high")] {
        let path = format!("{directory}/{file}");
        let Some(text) = if_there(root.read(&path))? else { continue };
        let limit = match text.trim() {
            "max" => continue,
            number => number.parse().map_err(|_| root.content(&path, format!("\"{number}\" is not a limit")))?,
        };
        let current = Bytes(root.read_number(&format!("{directory}/memory.current"))?);
        let stat = if_there(root.read(&format!("{directory}/memory.stat")))?;
        let anon = |text: &str| text.lines().find_map(|line| line.strip_prefix("anon ")?.parse().ok().map(Bytes));
        limits.push(MemoryLimit { path, kind, limit: Bytes(limit), current, private: stat.as_deref().and_then(anon) });
    }
    Ok(())
}
