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
    mount: Mount,
    /// Whether memory cgroups count huge pages, so that limits of memory apply to them.
    memory_counts: bool,
    /// Whether levels above the mount point may have limits that are not visible.
    hidden_levels: bool,
    /// The cgroup from which this program is shown the paths of others; empty where that is the one at the mount point, or not known.
    own: String,
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
    /// The names of the files behind `hugetlb.<size>.` and `hugetlb.<size>.rsvd.`: limit, usage, and how often it was refused.
    const fn files(self) -> [&'static str; 3] {
        match self {
            Self::V1 => ["limit_in_bytes", "usage_in_bytes", "failcnt"],
            // The one counter is of both limits.
            Self::V2 => ["max", "current", "events"],
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

/// Whether the name of a limit is that of a resource in the manifest of a pod, and not of a file.
pub fn is_of_pod(name: &str) -> bool {
    !name.starts_with('/')
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

    /// What the manifest of its pod asks for.
    pub fn of_pod(&self) -> Option<Bytes> {
        self.tightest()
            .filter(|limit| is_of_pod(&limit.path))
            .map(|limit| limit.limit)
    }
}

impl Hierarchy {
    /// Finds the hierarchy with the hugetlb controller, the host's where a container sees it; `None` if no cgroup could limit this process.
    pub fn find(root: &Root) -> Result<Option<Self>, ReadError> {
        // What limits this container is none of the host's.
        let is_beside = root.is_tree() && root.shows_processes() && root.exists("/proc/1");
        let mut found = Self::find_of(root, if is_beside { "1" } else { "self" })?;
        if let Some(found) = &mut found
            && let Ok(pid) = root.read_link("/proc/self")
            && let Some(own) = found.group_of(root, String::new(), &found.mount.root, &pid)
        {
            found.own = own;
            found.mount.root = "/".to_owned();
            // Only the topmost group of version 2 has no events.
            found.hidden_levels = found.version == Version::V1
                || root.exists(&at(&found.mount.point, "cgroup.events"));
            found.is_of_pod = false;
        }
        Ok(found)
    }

    /// The group of the process `pid`, which is `above` levels below `group`, as `/../..`: the kernel tells a container how far above its
    /// own group another one is that is mounted there, but not the names between (cgroup_namespaces(7)).
    fn group_of(&self, root: &Root, group: String, above: &str, pid: &str) -> Option<String> {
        let directory = at(&self.mount.point, &group);
        if let Some(above) = above.strip_prefix("/..") {
            return root
                .list(&directory)
                .ok()?
                .iter()
                .find_map(|name| self.group_of(root, format!("{group}/{name}"), above, pid));
        }
        let members = root.read(&format!("{directory}/cgroup.procs")).ok()?;
        (above.is_empty() && members.lines().any(|member| member == pid)).then_some(group)
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
        let mut all = mounts::read(root)?.into_iter();
        let Some(mount) = all.find(|mount| version.is_at(mount, CONTROLLER)) else {
            // At the top of the host's hierarchy there are no limits, so nothing is missed.
            if path == "/" && !namespaced {
                return Ok(None);
            }
            return Err(root.content(
                mounts::PATH,
                "no cgroup file system with the hugetlb controller is mounted",
            ));
        };
        let is_part = namespaced || mount.root != "/";
        Ok(Some(Self {
            is_of_pod: is_part && KUBELET.iter().any(|sign| text.contains(sign)),
            hidden_levels: is_part,
            own: String::new(),
            memory_counts: text.contains(ACCOUNTING),
            version,
            mount,
            process: process.to_owned(),
        }))
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
        let mut path = membership(&memberships, CONTROLLER).map_or("/", |(_, path)| path);
        let mut own = &*self.own;
        while let Some((rest, (parent, _))) = path.strip_prefix("/..").zip(own.rsplit_once('/')) {
            (own, path) = (parent, rest);
        }
        let path = format!("{own}{path}");
        let outside = || {
            root.content(
                &file,
                format!("its cgroup {path} is outside what is mounted"),
            )
        };
        let Some(below) = notes.keep(below(&self.mount.root, &path).ok_or_else(outside)) else {
            return limits;
        };
        limits.hidden_levels = self.hidden_levels;
        // The host's topmost cgroup has no limits.
        let has_limits = |level: &&str| !level.is_empty() || self.hidden_levels;
        for level in levels(&below).filter(has_limits) {
            let result = self.read_level(root, level, page_size, &mut limits);
            limits.hidden_levels |= notes.keep(result).is_none();
            if let Some(limit) = self.limit_of_memory(root, level, notes) {
                notes
                    .add(format!("{limit} counts huge pages, too ({ACCOUNTING}), and what is left of it is not known"));
                limits.hidden_levels = true;
            }
        }
        // The kubelet sets them all, of the node's pods as of each, whatever is above them.
        if self.is_of_pod || path.contains("kubepods") {
            for limit in limits.fault.iter_mut().chain(&mut limits.reservation) {
                limit.path = page_size.kubernetes_resource();
            }
        }
        limits
    }

    /// A limit of memory that applies at this level, by its file if that is known: of a hierarchy v1 it is in another one.
    fn limit_of_memory(&self, root: &Root, level: &str, notes: &mut Notes) -> Option<String> {
        let any = Some("a limit of memory".to_owned());
        if !self.memory_counts {
            return None;
        }
        if self.version == Version::V1 {
            return any;
        }
        for file in ["memory.max", "memory.high"] {
            let path = format!("{}/{file}", at(&self.mount.point, level));
            match notes.keep(limit(root, &path)) {
                Some(None) => {}
                Some(Some(_)) => return Some(path),
                None => return any,
            }
        }
        None
    }

    fn read_level(
        &self,
        root: &Root,
        level: &str,
        size: PageSize,
        limits: &mut CgroupLimits,
    ) -> Result<(), ReadError> {
        let prefix = at(&self.mount.point, level) + "/hugetlb." + &size.cgroup_name();
        let [limit_file, usage_file, refusals] = self.version.files();
        let is_first = limits.refusals.is_none();
        for (kind, into) in [("", &mut limits.fault), ("rsvd.", &mut limits.reservation)] {
            // The first level that has the controller is the cgroup whose processes they were (mm/hugetlb_cgroup.c, `hugetlb_event`).
            if is_first {
                let path = format!("{prefix}.{kind}{refusals}");
                let count = |line: &str| line.trim_start_matches("max ").parse::<u64>().ok();
                let count = if_there(root.read_short(&path, |text| text.lines().find_map(count)))?
                    .flatten();
                let most = limits.refusals.as_ref().map(|(_, most)| *most);
                if let Some(count) = count.filter(|count| Some(*count) >= most) {
                    limits.refusals = Some((path, count));
                }
            }
            let path = format!("{prefix}.{kind}{limit_file}");
            let Some(limit) = limit(root, &path)? else {
                continue;
            };
            let usage = Bytes(root.read_number(&format!("{prefix}.{kind}{usage_file}"))?);
            let promised = match kind {
                "" => if_there(root.read_number(&format!("{prefix}.rsvd.{usage_file}")))?,
                _ => None,
            };
            into.push(CgroupLimit {
                path,
                limit,
                usage,
                promised: promised.map(Bytes),
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
        number => root.number(path, number),
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
        if let Some(path) = line.strip_prefix("0::") {
            return Some((Version::V2, path));
        }
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let mut names = controllers.split(',');
        names
            .any(|name| name == controller)
            .then_some((Version::V1, path))
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
