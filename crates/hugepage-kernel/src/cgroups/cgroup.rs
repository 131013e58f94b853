//! The hugetlb controller of cgroups, v1 and v2: limits that the pools do not show (admin-guide/cgroup-v2, cgroup-v1/hugetlb).
//!
//! `rsvd.max` is checked when memory is mapped, `max` when a page is first touched. Limits of levels above the top of a
//! container's view apply too, but are not visible inside.

use serde::{Deserialize, Serialize};

use crate::host::mounts::{self, Mount};
use crate::source::root::if_there;
use crate::{Bytes, Notes, PageSize, ReadError, Root};

/// The inode of the host's own cgroup namespace, a constant of the kernel since 4.6 (include/linux/proc_ns.h).
const HOST_NAMESPACE: &str = "cgroup:[4026531835]";
/// The mount option with which memory cgroups count huge pages, too (Linux 6.7).
const ACCOUNTING: &str = "memory_hugetlb_accounting";
/// The lowest number that means "no limit": v1 has no word for it and shows the largest page counter, rounded to pages.
pub const MIN_UNLIMITED: u64 = 1 << 62;

/// Where the hugetlb controller is mounted, as this process sees it. It rarely changes, so callers may keep it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    version: Version,
    mount_point: String,
    /// The cgroup at the mount point.
    mount_root: String,
    /// Whether memory cgroups count huge pages, so that limits of memory apply to them.
    memory_counts: bool,
    /// Whether levels above `mount_point` may have limits that are not visible.
    hidden_levels: bool,
    /// The process whose cgroup counts, by its name below /proc.
    pub process: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

impl Version {
    /// The names of the limit and usage files behind `hugetlb.<size>.`.
    const fn files(self) -> [[&'static str; 2]; 2] {
        match self {
            Self::V1 => [["limit_in_bytes", "usage_in_bytes"], ["rsvd.limit_in_bytes", "rsvd.usage_in_bytes"]],
            Self::V2 => [["max", "current"], ["rsvd.max", "rsvd.current"]],
        }
    }

    /// Whether `mount` is the hierarchy that has the controller.
    fn is_at(self, mount: &Mount) -> bool {
        match self {
            Self::V1 => mount.kind == "cgroup" && mount.has("hugetlb"),
            Self::V2 => mount.kind == "cgroup2",
        }
    }
}

/// The limit of one level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupLimit {
    /// The file that sets it.
    pub path: String,
    /// The largest number of bytes that this cgroup may use.
    pub limit: Bytes,
    /// The bytes that all of its processes use.
    pub usage: Bytes,
    /// What the processes were promised, of a limit that is checked when a page is touched (`rsvd.current`, Linux 5.7).
    /// `None` if it is unknown, and of a limit on that.
    pub promised: Option<Bytes>,
}

impl CgroupLimit {
    /// The bytes that are left once `own` of the usage is given back. A usage below `own` shows that those pages are
    /// charged to another cgroup, as after a move of the process, so none of them come back here.
    pub fn room_without(&self, own: Bytes) -> Bytes {
        self.limit.saturating_sub(self.usage_without(own))
    }

    /// The usage of others, besides a server that has `own`.
    pub fn usage_without(&self, own: Bytes) -> Bytes {
        if self.usage < own { self.usage } else { self.usage.saturating_sub(own) }
    }

    /// The usage of all that share the limit, once a server that has `own` now has `next` and each has touched all that
    /// it was promised. `None` if promises are unknown.
    pub fn promised_with(&self, own: Bytes, next: Bytes) -> Option<Bytes> {
        let promised = self.promised?;
        Some(if promised < own { promised } else { promised.saturating_sub(own) }.saturating_add(next))
    }
}

/// All visible limits on one page size, from the process's own cgroup upwards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupLimits {
    /// The limits that are checked when a page is first touched: SIGBUS or EFAULT above them.
    pub fault: Vec<CgroupLimit>,
    /// The limits that mmap(2) and shmget(2) check: ENOMEM above them.
    pub reservation: Vec<CgroupLimit>,
    /// The file that counts how often a limit refused huge pages to the cgroup, and its number; `None` if there is no such file.
    pub refusals: Option<(String, u64)>,
    /// Whether there may be limits that are not visible.
    pub hidden_levels: bool,
}

impl CgroupLimits {
    /// The limit of either kind with the least room.
    pub fn tightest(&self) -> Option<&CgroupLimit> {
        self.fault.iter().chain(&self.reservation).min_by_key(|limit| limit.room_without(Bytes(0)))
    }
}

impl Hierarchy {
    /// Finds the hierarchy with the hugetlb controller; `None` if no cgroup could limit this process.
    pub fn find(root: &Root) -> Result<Option<Self>, ReadError> {
        Self::find_of(root, "self")
    }

    /// Finds the hierarchy of `process`, by its name below /proc: a process that sees the same mounts as this one.
    pub fn find_of(root: &Root, process: &str) -> Result<Option<Self>, ReadError> {
        let Some(memberships) = if_there(root.read(&format!("/proc/{process}/cgroup")))? else { return Ok(None) };
        let Some((version, path)) = membership(&memberships) else { return Ok(None) };
        let namespaced = if_there(root.read_link("/proc/self/ns/cgroup"))?.is_some_and(|link| link != HOST_NAMESPACE);
        let text = root.read(mounts::PATH)?;
        let memory_counts = mounts::parse(&text).any(|mount| mount.kind == "cgroup2" && mount.has(ACCOUNTING));
        match mounts::parse(&text).find(|mount| version.is_at(mount)) {
            Some(Mount { root: mount_root, point: mount_point, .. }) => Ok(Some(Self {
                hidden_levels: namespaced || mount_root != "/",
                memory_counts,
                version,
                mount_point,
                mount_root,
                process: process.to_owned(),
            })),
            // At the top of the host's hierarchy there are no limits, so nothing is missed.
            None if path == "/" && !namespaced => Ok(None),
            None => Err(root.content(mounts::PATH, "no cgroup file system with the hugetlb controller is mounted")),
        }
    }

    /// The limits on `page_size` for the process of [`Hierarchy::find_of`]. What cannot be read is a note, and counts as hidden.
    pub fn limits(&self, root: &Root, page_size: PageSize, notes: &mut Notes) -> CgroupLimits {
        self.limits_of(root, &self.process, page_size, notes)
    }

    /// The same for another `process`, by its name below /proc.
    pub fn limits_of(&self, root: &Root, process: &str, page_size: PageSize, notes: &mut Notes) -> CgroupLimits {
        let file = format!("/proc/{process}/cgroup");
        let Some(memberships) = notes.keep(root.read_short(&file, str::to_owned)) else {
            return CgroupLimits { hidden_levels: true, ..CgroupLimits::default() };
        };
        let mut limits = CgroupLimits { hidden_levels: self.hidden_levels, ..CgroupLimits::default() };
        let outside = |path| root.content(&file, format!("its cgroup {path} is outside what is mounted"));
        let path = membership(&memberships).map_or("/", |(_, path)| path);
        let Some(path) = notes.keep(below(&self.mount_root, path).ok_or_else(|| outside(path))) else {
            return CgroupLimits { hidden_levels: true, ..limits };
        };
        // The host's topmost cgroup has no limits.
        let has_limits = |level: &&str| !level.is_empty() || self.hidden_levels;
        for level in levels(&path).filter(has_limits) {
            let result = self.read_level(root, level, page_size, &mut limits);
            let memory = if self.memory_counts { self.limit_of_memory(root, level) } else { Ok(None) };
            limits.hidden_levels |= notes.keep(result).is_none();
            if let Some(limit) = notes.keep(memory).unwrap_or(Some("a limit of memory".to_owned())) {
                notes
                    .add(format!("{limit} counts huge pages, too ({ACCOUNTING}), and what is left of it is not known"));
                limits.hidden_levels = true;
            }
        }
        limits
    }

    /// A limit of memory that applies at this level, by its file. In a hierarchy v1 of hugetlb, the memory cgroup is another one.
    fn limit_of_memory(&self, root: &Root, level: &str) -> Result<Option<String>, ReadError> {
        if self.version == Version::V1 {
            return Ok(Some("a limit of memory".to_owned()));
        }
        for file in ["memory.max", "memory.high"] {
            let path = if level.is_empty() { file.to_owned() } else { format!("{level}/{file}") };
            let path = format!("{}/{path}", self.mount_point);
            if if_there(root.read_short(&path, |text| text.trim() != "max"))?.unwrap_or_default() {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    fn read_level(&self, root: &Root, level: &str, size: PageSize, limits: &mut CgroupLimits) -> Result<(), ReadError> {
        let level = if level.is_empty() { String::new() } else { format!("/{level}") };
        let prefix = format!("{}{level}/hugetlb.{}", self.mount_point, size.cgroup_name());
        let [fault, reservation] = self.version.files();
        let ([fault_limit, _], [_, promised_file]) = (fault, reservation);
        let is_first = limits.refusals.is_none();
        // The first level that has the controller is the cgroup whose processes they were (mm/hugetlb_cgroup.c, `hugetlb_event`).
        let counters: &[_] = if self.version == Version::V1 { &["failcnt", "rsvd.failcnt"] } else { &["events"] };
        for file in counters.iter().filter(|_| is_first) {
            let path = format!("{prefix}.{file}");
            let count = |line: &str| line.strip_prefix("max ").unwrap_or(line).parse::<u64>().ok();
            let count = if_there(root.read_short(&path, |text| text.lines().find_map(count)))?.flatten();
            let found = count.map(|count| (path, count));
            limits.refusals = limits.refusals.take().into_iter().chain(found).max_by_key(|(_, count)| *count);
        }
        for ([limit_file, usage_file], into) in [(fault, &mut limits.fault), (reservation, &mut limits.reservation)] {
            let path = format!("{prefix}.{limit_file}");
            let Some(text) = if_there(root.read_short(&path, str::to_owned))? else { continue };
            let limit = match text.trim() {
                "max" => continue,
                number => number.parse().map_err(|_| root.content(&path, format!("\"{number}\" is not a limit")))?,
            };
            if limit >= MIN_UNLIMITED {
                continue;
            }
            let usage = Bytes(root.read_number(&format!("{prefix}.{usage_file}"))?);
            let promised = match limit_file == fault_limit {
                true => if_there(root.read_number(&format!("{prefix}.{promised_file}")))?.map(Bytes),
                false => None,
            };
            into.push(CgroupLimit { path, limit: Bytes(limit), usage, promised });
        }
        Ok(())
    }
}

/// The part of `path`, as /proc/PID/cgroup has it, below a mount point where `mount_root` stands; `None` if it is outside.
pub fn below(mount_root: &str, path: &str) -> Option<String> {
    let below = match mount_root {
        "/" => path,
        // A container that shares the host's cgroup namespace sees the host's path, and its own part mounted; one that does not sees
        // "/". A mount from outside a cgroup namespace has a root like "/..", which leaves open where its part begins.
        mount_root if path == "/" && !mount_root.starts_with("/..") => "",
        mount_root => path.strip_prefix(mount_root).filter(|below| below.is_empty() || below.starts_with('/'))?,
    };
    (!below.split('/').any(|part| part == "..")).then(|| below.trim_matches('/').to_owned())
}

/// `a/b`, `a` and the topmost, which is empty.
pub fn levels(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |level| {
        (!level.is_empty()).then(|| level.rsplit_once('/').map_or("", |(parent, _)| parent))
    })
}

/// The cgroup of hugetlb in /proc/self/cgroup: v1's where v1 has the controller, else v2's.
fn membership(text: &str) -> Option<(Version, &str)> {
    let mut v2 = None;
    for line in text.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(id), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else { continue };
        if controllers.split(',').any(|name| name == "hugetlb") {
            return Some((Version::V1, path));
        }
        if id == "0" && controllers.is_empty() {
            v2 = Some((Version::V2, path));
        }
    }
    v2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn membership_prefers_the_hierarchy_that_has_the_controller() {
        let both = "12:hugetlb,freezer:/docker/abc\n1:name=systemd:/x\n0::/user.slice\n";
        assert_eq!(membership(both), Some((Version::V1, "/docker/abc")));
        assert_eq!(membership("0::/user.slice/a:b\n"), Some((Version::V2, "/user.slice/a:b")));
        assert_eq!(membership("3:cpu:/\n"), None);
    }

    #[test]
    fn mounts_of_both_versions() {
        let v1 = "35 28 0:31 /docker/abc /sys/fs/cgroup/hugetlb ro,nosuid master:15 - cgroup cgroup rw,hugetlb";
        let v2 = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
        let [v1, v2] = [v1, v2].map(|line| Mount::parse(line).unwrap());
        assert!(Version::V1.is_at(&v1) && !Version::V1.is_at(&v2));
        assert!(Version::V2.is_at(&v2) && !Version::V2.is_at(&v1));
    }
}
