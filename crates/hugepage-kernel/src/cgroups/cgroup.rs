//! The hugetlb controller of cgroups, v1 and v2: limits that the pools do not show (admin-guide/cgroup-v2, cgroup-v1/hugetlb).
//!
//! `rsvd.max` is checked when memory is mapped, `max` when a page is first touched. Limits of levels above the top of a
//! container's view apply too, but are not visible inside.

use serde::{Deserialize, Serialize};

use crate::host::mounts::{self, Mount};
use crate::{Bytes, Notes, PageSize, ReadError, Root, if_there};

/// The inode of the host's own cgroup namespace, a constant of the kernel since 4.6 (include/linux/proc_ns.h).
const HOST_NAMESPACE: &str = "cgroup:[4026531835]";
/// What the kubelet mounts into a container: files below its directory, by default, its file of hosts, the token of an account.
const KUBELET: [&str; 3] = [
    "/kubelet/pods/",
    "/etc-hosts /etc/hosts ",
    "/secrets/kubernetes.io/",
];
/// The name of the controller.
const CONTROLLER: &str = "hugetlb";
/// The mount option with which memory cgroups count huge pages, too (Linux 6.7).
const ACCOUNTING: &str = "memory_hugetlb_accounting";
/// The lowest number that means "no limit": v1 has no word for it and shows the largest page counter, rounded to pages.
const MIN_UNLIMITED: u64 = 1 << 62;

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
    /// Whether it is that of a pod of Kubernetes, as what the kubelet mounts shows, and not of a host.
    pub is_of_pod: bool,
    /// The process whose cgroup counts, by its name below /proc.
    pub process: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V2,
}

impl Version {
    /// The names of the limit and usage files behind `hugetlb.<size>.`.
    const fn files(self) -> [[&'static str; 2]; 2] {
        match self {
            Self::V1 => [
                ["limit_in_bytes", "usage_in_bytes"],
                ["rsvd.limit_in_bytes", "rsvd.usage_in_bytes"],
            ],
            Self::V2 => [["max", "current"], ["rsvd.max", "rsvd.current"]],
        }
    }

    /// Whether `mount` is the hierarchy that has `controller`.
    pub(super) fn is_at(self, mount: &Mount, controller: &str) -> bool {
        match self {
            Self::V1 => mount.kind == "cgroup" && mount.has(controller),
            Self::V2 => mount.kind == "cgroup2",
        }
    }
}

/// The limit of one level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupLimit {
    /// The file that sets it; of a pod the name of the resource in its manifest, from which the file is written.
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
        without(self.usage, own)
    }

    /// The usage of all that share the limit, once a server that has `own` now has `next` and each has touched all that
    /// it was promised. `None` if promises are unknown.
    pub fn promised_with(&self, own: Bytes, next: Bytes) -> Option<Bytes> {
        Some(without(self.promised?, own).saturating_add(next))
    }
}

/// What others have of `all`, besides a server that has `own`: if that is more, its pages are charged elsewhere.
fn without(all: Bytes, own: Bytes) -> Bytes {
    all.saturating_sub(if all < own { Bytes(0) } else { own })
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
        self.fault
            .iter()
            .chain(&self.reservation)
            .min_by_key(|limit| limit.room_without(Bytes(0)))
    }
}

impl Hierarchy {
    /// Finds the hierarchy with the hugetlb controller; `None` if no cgroup could limit this process.
    pub fn find(root: &Root) -> Result<Option<Self>, ReadError> {
        Self::find_of(root, "self")
    }

    /// Finds the hierarchy of `process`, by its name below /proc: a process that sees the same mounts as this one.
    pub fn find_of(root: &Root, process: &str) -> Result<Option<Self>, ReadError> {
        let Some(memberships) = if_there(root.read(&format!("/proc/{process}/cgroup")))? else {
            return Ok(None);
        };
        let Some((version, path)) = membership(&memberships, CONTROLLER) else {
            return Ok(None);
        };
        let namespaced = if_there(root.read_link("/proc/self/ns/cgroup"))?
            .is_some_and(|link| link != HOST_NAMESPACE);
        let text = root.read(mounts::PATH)?;
        let memory_counts =
            mounts::parse(&text).any(|mount| mount.kind == "cgroup2" && mount.has(ACCOUNTING));
        match mounts::parse(&text).find(|mount| version.is_at(mount, CONTROLLER)) {
            Some(Mount {
                root: mount_root,
                point: mount_point,
                ..
            }) => Ok(Some(Self {
                is_of_pod: (namespaced || mount_root != "/")
                    && KUBELET.iter().any(|sign| text.contains(sign)),
                hidden_levels: namespaced || mount_root != "/",
                memory_counts,
                version,
                mount_point,
                mount_root,
                process: process.to_owned(),
            })),
            // At the top of the host's hierarchy there are no limits, so nothing is missed.
            None if path == "/" && !namespaced => Ok(None),
            None => Err(root.content(
                mounts::PATH,
                "no cgroup file system with the hugetlb controller is mounted",
            )),
        }
    }

    /// The limits on `page_size` for the process of [`Hierarchy::find_of`]. What cannot be read is a note, and counts as hidden.
    pub fn limits(&self, root: &Root, page_size: PageSize, notes: &mut Notes) -> CgroupLimits {
        self.limits_of(root, &self.process, page_size, notes)
    }

    /// The same for another `process`, by its name below /proc.
    pub fn limits_of(
        &self,
        root: &Root,
        process: &str,
        page_size: PageSize,
        notes: &mut Notes,
    ) -> CgroupLimits {
        let file = format!("/proc/{process}/cgroup");
        let mut limits = CgroupLimits {
            hidden_levels: true,
            ..CgroupLimits::default()
        };
        let Some(memberships) = notes.keep(root.read_short(&file, str::to_owned)) else {
            return limits;
        };
        let outside = |path| {
            root.content(
                &file,
                format!("its cgroup {path} is outside what is mounted"),
            )
        };
        let path = membership(&memberships, CONTROLLER).map_or("/", |(_, path)| path);
        let Some(path) = notes.keep(below(&self.mount_root, path).ok_or_else(|| outside(path)))
        else {
            return limits;
        };
        limits.hidden_levels = self.hidden_levels;
        // The host's topmost cgroup has no limits.
        let has_limits = |level: &&str| !level.is_empty() || self.hidden_levels;
        for level in levels(&path).filter(has_limits) {
            let result = self.read_level(root, level, page_size, &mut limits);
            let memory = if self.memory_counts {
                self.limit_of_memory(root, level)
            } else {
                Ok(None)
            };
            limits.hidden_levels |= notes.keep(result).is_none();
            if let Some(limit) = notes
                .keep(memory)
                .unwrap_or(Some("a limit of memory".to_owned()))
            {
                notes
                    .add(format!("{limit} counts huge pages, too ({ACCOUNTING}), and what is left of it is not known"));
                limits.hidden_levels = true;
            }
        }
        // The kubelet sets them all, of the node's pods as of each, whatever is above them.
        if self.is_of_pod || memberships.contains("kubepods") {
            for limit in limits.fault.iter_mut().chain(&mut limits.reservation) {
                limit.path = page_size.kubernetes_resource();
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
            let path = format!("{}/{file}", at(&self.mount_point, level));
            if limit(root, &path)?.is_some() {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    fn read_level(
        &self,
        root: &Root,
        level: &str,
        size: PageSize,
        limits: &mut CgroupLimits,
    ) -> Result<(), ReadError> {
        let directory = at(&self.mount_point, level);
        let prefix = format!("{directory}/hugetlb.{}", size.cgroup_name());
        let [fault, reservation] = self.version.files();
        let ([fault_limit, _], [_, promised_file]) = (fault, reservation);
        let is_first = limits.refusals.is_none();
        // The first level that has the controller is the cgroup whose processes they were (mm/hugetlb_cgroup.c, `hugetlb_event`).
        let counters: &[_] = if self.version == Version::V1 {
            &["failcnt", "rsvd.failcnt"]
        } else {
            &["events"]
        };
        for file in counters.iter().filter(|_| is_first) {
            let path = format!("{prefix}.{file}");
            let count = |line: &str| {
                line.strip_prefix("max ")
                    .unwrap_or(line)
                    .parse::<u64>()
                    .ok()
            };
            let count =
                if_there(root.read_short(&path, |text| text.lines().find_map(count)))?.flatten();
            let most = limits.refusals.as_ref().map(|(_, most)| *most);
            if let Some(count) = count.filter(|count| Some(*count) >= most) {
                limits.refusals = Some((path, count));
            }
        }
        for ([limit_file, usage_file], into) in [
            (fault, &mut limits.fault),
            (reservation, &mut limits.reservation),
        ] {
            let path = format!("{prefix}.{limit_file}");
            let Some(limit) = limit(root, &path)? else {
                continue;
            };
            let usage = Bytes(root.read_number(&format!("{prefix}.{usage_file}"))?);
            let promised = if limit_file == fault_limit {
                if_there(root.read_number(&format!("{prefix}.{promised_file}")))?.map(Bytes)
            } else {
                None
            };
            into.push(CgroupLimit {
                path,
                limit,
                usage,
                promised,
            });
        }
        Ok(())
    }
}

/// The part of `path`, as /proc/PID/cgroup has it, below a mount point where `mount_root` stands; `None` if it is outside.
pub(super) fn below(mount_root: &str, path: &str) -> Option<String> {
    let below = match mount_root {
        "/" => path,
        // A container that shares the host's cgroup namespace sees the host's path, and its own part mounted; one that does not sees
        // "/". A mount from outside a cgroup namespace has a root like "/..", which leaves open where its part begins.
        mount_root if path == "/" && !mount_root.starts_with("/..") => "",
        mount_root => path
            .strip_prefix(mount_root)
            .filter(|below| below.is_empty() || below.starts_with('/'))?,
    };
    (!below.split('/').any(|part| part == "..")).then(|| below.trim_matches('/').to_owned())
}

/// What the file `path` limits to; `None` if it is not there, or sets no limit.
pub(super) fn limit(root: &Root, path: &str) -> Result<Option<Bytes>, ReadError> {
    let number = |text: &str| match text.trim() {
        "max" => Ok(u64::MAX),
        number => number
            .parse()
            .map_err(|_| root.content(path, format!("\"{number}\" is not a limit"))),
    };
    let limit = if_there(root.read_short(path, number))?.transpose()?;
    Ok(limit.filter(|limit| *limit < MIN_UNLIMITED).map(Bytes))
}

/// The directory of a level.
pub(super) fn at(mount_point: &str, level: &str) -> String {
    format!("{mount_point}/{level}")
        .trim_end_matches('/')
        .to_owned()
}

/// `a/b`, `a` and the topmost, which is empty.
pub(super) fn levels(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |level| {
        (!level.is_empty()).then(|| level.rsplit_once('/').map_or("", |(parent, _)| parent))
    })
}

/// The cgroup of `controller` in /proc/PID/cgroup: v1's where v1 has the controller, else v2's.
pub(super) fn membership<'a>(text: &'a str, controller: &str) -> Option<(Version, &'a str)> {
    let of_line = |line: &'a str| {
        let (id, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let is_v1 = controllers.split(',').any(|name| name == controller);
        let is_v2 = id == "0" && controllers.is_empty();
        let version = if is_v1 { Version::V1 } else { Version::V2 };
        (is_v1 || is_v2).then_some((version, path))
    };
    let found = text.lines().filter_map(of_line);
    found.min_by_key(|(version, _)| *version == Version::V2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn membership_prefers_the_hierarchy_that_has_the_controller() {
        let both = "12:hugetlb,freezer:/docker/abc\n1:name=systemd:/x\n0::/user.slice\n";
        assert_eq!(
            membership(both, CONTROLLER),
            Some((Version::V1, "/docker/abc"))
        );
        assert_eq!(
            membership("0::/user.slice/a:b\n", CONTROLLER),
            Some((Version::V2, "/user.slice/a:b"))
        );
        assert_eq!(membership("3:cpu:/\n", CONTROLLER), None);
    }

    #[test]
    fn mounts_of_both_versions() {
        let v1 = "35 28 0:31 /docker/abc /sys/fs/cgroup/hugetlb ro,nosuid master:15 - cgroup cgroup rw,hugetlb";
        let v2 = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
        let [v1, v2] = [v1, v2].map(|line| Mount::parse(line).unwrap());
        assert!(Version::V1.is_at(&v1, CONTROLLER) && !Version::V1.is_at(&v2, CONTROLLER));
        assert!(Version::V2.is_at(&v2, CONTROLLER) && !Version::V2.is_at(&v1, CONTROLLER));
    }
}
