//! The hugetlb controller of cgroups, v1 and v2: limits that the pools do not show (admin-guide/cgroup-v2,
//! cgroup-v1/hugetlb).
//!
//! `rsvd.max` is checked when memory is mapped, `max` when a page is first touched. Limits of levels above the top of a
//! container's view apply too, but are not visible inside.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use crate::Notes;
use crate::read::Root;
use crate::read::root::if_there;
use crate::{Bytes, PageSize, ReadError};

/// The inode of the host's own cgroup namespace, a constant of the kernel since 4.6 (include/linux/proc_ns.h).
const HOST_NAMESPACE: &str = "cgroup:[4026531835]";
/// Limits this high mean "no limit": v1 has no word for it and shows the largest page counter, rounded to pages.
const MIN_UNLIMITED: u64 = 1 << 62;
/// The cgroup of a process is read again after this time; processes rarely move.
const MAX_PATH_AGE: Duration = Duration::from_secs(1);

/// Where the hugetlb controller is mounted, as this process sees it. It rarely changes, so callers may keep it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    version: Version,
    mount_point: String,
    /// The cgroup at the mount point.
    mount_root: String,
    /// Whether levels above `mount_point` may have limits that are not visible.
    hidden_levels: bool,
    /// The process whose cgroup counts, by its name below /proc.
    process: String,
    /// The cgroup of that process, and when it was read; see [`MAX_PATH_AGE`].
    own_path: RefCell<Option<(Instant, String)>>,
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
}

/// The limit of one level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupLimit {
    /// The file that sets it.
    pub path: String,
    /// The largest number of bytes that this cgroup may use.
    pub limit: Bytes,
    /// The bytes that all of its processes use.
    pub usage: Bytes,
}

impl CgroupLimit {
    /// The bytes that are left.
    pub const fn room(&self) -> Bytes {
        self.room_without(Bytes(0))
    }

    /// The bytes that are left once `own` of the usage is released.
    pub const fn room_without(&self, own: Bytes) -> Bytes {
        self.limit.saturating_sub(self.usage.saturating_sub(own))
    }
}

/// All visible limits on one page size, from the process's own cgroup upwards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CgroupLimits {
    /// Checked when a page is first touched: SIGBUS or EFAULT above it.
    pub fault: Vec<CgroupLimit>,
    /// Checked by mmap(2) and shmget(2): ENOMEM above it.
    pub reservation: Vec<CgroupLimit>,
    /// Whether there may be limits that are not visible.
    pub hidden_levels: bool,
}

impl CgroupLimits {
    /// The lowest fault-time limit.
    pub fn lowest_fault(&self) -> Option<&CgroupLimit> {
        self.fault.iter().min_by_key(|limit| limit.limit)
    }

    /// The reservation limit with the least room.
    pub fn tightest_reservation(&self) -> Option<&CgroupLimit> {
        self.tightest_reservation_without(Bytes(0))
    }

    /// The reservation limit with the least room once `own` of the usage is released.
    pub fn tightest_reservation_without(&self, own: Bytes) -> Option<&CgroupLimit> {
        self.reservation.iter().min_by_key(|limit| limit.room_without(own))
    }

    /// The limit of either kind with the least room.
    pub fn tightest(&self) -> Option<&CgroupLimit> {
        self.fault.iter().chain(&self.reservation).min_by_key(|limit| limit.room())
    }
}

impl Hierarchy {
    /// Finds the hierarchy with the hugetlb controller; `None` where this kernel has no cgroups, or none that could
    /// limit this process.
    pub fn find(root: &Root) -> Result<Option<Self>, ReadError> {
        Self::find_of(root, "self")
    }

    /// The same for `process`, as it is named below /proc: another one that sees the same mounts.
    pub fn find_of(root: &Root, process: &str) -> Result<Option<Self>, ReadError> {
        let Some(memberships) = if_there(root.read(&format!("/proc/{process}/cgroup")))? else { return Ok(None) };
        let Some((version, path)) = membership(&memberships) else { return Ok(None) };
        const MOUNTS: &str = "/proc/self/mountinfo";
        let namespaced = if_there(root.read_link("/proc/self/ns/cgroup"))?.is_some_and(|link| link != HOST_NAMESPACE);
        match root.read(MOUNTS)?.lines().find_map(|line| mount(line, version)) {
            Some((mount_root, mount_point)) => {
                let hidden_levels = namespaced || mount_root != "/";
                let (process, own_path) = (process.to_owned(), RefCell::default());
                Ok(Some(Self { version, mount_point, mount_root, hidden_levels, process, own_path }))
            }
            // The top of the host's hierarchy has no limits, so nothing is missed.
            None if path == "/" && !namespaced => Ok(None),
            None => Err(root.content(MOUNTS, "no cgroup file system with the hugetlb controller is mounted")),
        }
    }

    /// The limits on `page_size` that apply now to the process of [`Hierarchy::find_of`]. What cannot be read is a note,
    /// and counts as hidden levels.
    pub fn limits(&self, root: &Root, page_size: PageSize, notes: &mut Notes) -> CgroupLimits {
        self.limits_on(root, self.own_path(root), page_size, notes)
    }

    /// The same for another process, `pid`.
    pub fn limits_of(&self, root: &Root, pid: i32, page_size: PageSize, notes: &mut Notes) -> CgroupLimits {
        self.limits_on(root, self.path_of(root, &format!("/proc/{pid}/cgroup")), page_size, notes)
    }

    fn limits_on(
        &self,
        root: &Root,
        path: Result<String, ReadError>,
        page_size: PageSize,
        notes: &mut Notes,
    ) -> CgroupLimits {
        let mut limits = CgroupLimits { hidden_levels: self.hidden_levels, ..CgroupLimits::default() };
        let Some(path) = notes.keep(path) else {
            return CgroupLimits { hidden_levels: true, ..limits };
        };
        let mut level = path.as_str();
        loop {
            // The host's topmost cgroup has no limits.
            if !level.is_empty() || self.hidden_levels {
                let result = self.read_level(root, level, page_size, &mut limits);
                limits.hidden_levels |= notes.keep(result).is_none();
            }
            if level.is_empty() {
                return limits;
            }
            level = level.rsplit_once('/').map_or("", |(parent, _)| parent);
        }
    }

    /// The cgroup of that process as a path below the mount point, without a slash at either end.
    fn own_path(&self, root: &Root) -> Result<String, ReadError> {
        if let Some((at, path)) = &*self.own_path.borrow()
            && at.elapsed() < MAX_PATH_AGE
        {
            return Ok(path.clone());
        }
        let path = self.path_of(root, &format!("/proc/{}/cgroup", self.process))?;
        *self.own_path.borrow_mut() = Some((Instant::now(), path.clone()));
        Ok(path)
    }

    /// The cgroup that `file`, the cgroup file of a process, names, as a path below the mount point.
    fn path_of(&self, root: &Root, file: &str) -> Result<String, ReadError> {
        let path = root.read_short(file, |text| membership(text).map_or("/", |(_, path)| path).to_owned())?;
        let below = match self.mount_root.as_str() {
            "/" => Some(path.as_str()),
            // A container that shares the host's cgroup namespace sees the host's path, and its own part mounted;
            // another one sees "/". A mount from outside a cgroup namespace has a root like "/..", so where its part
            // begins is unknown.
            mount_root if path == "/" && !mount_root.starts_with("/..") => Some(""),
            mount_root => path.strip_prefix(mount_root).filter(|below| below.is_empty() || below.starts_with('/')),
        };
        match below {
            Some(below) if !below.split('/').any(|part| part == "..") => Ok(below.trim_matches('/').to_owned()),
            _ => Err(root.content(file, format!("its cgroup {path} is outside what is mounted"))),
        }
    }

    fn read_level(&self, root: &Root, level: &str, size: PageSize, limits: &mut CgroupLimits) -> Result<(), ReadError> {
        let level = if level.is_empty() { String::new() } else { format!("/{level}") };
        let prefix = format!("{}{level}/hugetlb.{}", self.mount_point, size.cgroup_name());
        let [fault, reservation] = self.version.files();
        for ([limit_file, usage_file], into) in [(fault, &mut limits.fault), (reservation, &mut limits.reservation)] {
            let path = format!("{prefix}.{limit_file}");
            let Some(text) = if_there(root.read(&path))? else { continue };
            match text.trim() {
                "max" => {}
                number => match number.parse() {
                    Ok(limit) if limit < MIN_UNLIMITED => {
                        let usage = Bytes(root.read_number(&format!("{prefix}.{usage_file}"))?);
                        into.push(CgroupLimit { path, limit: Bytes(limit), usage });
                    }
                    Ok(_) => {}
                    Err(_) => return Err(root.content(&path, format!("\"{number}\" is not a limit"))),
                },
            }
        }
        Ok(())
    }
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

/// The mounted cgroup and its place from one line of /proc/self/mountinfo (proc(5)), if it is the wanted hierarchy.
fn mount(line: &str, version: Version) -> Option<(String, String)> {
    let (own, file_system) = line.split_once(" - ")?;
    let mut file_system = file_system.split(' ');
    let wanted = match (file_system.next()?, version) {
        ("cgroup2", Version::V2) => true,
        ("cgroup", Version::V1) => file_system.nth(1)?.split(',').any(|option| option == "hugetlb"),
        _ => false,
    };
    let mut own = own.split(' ').skip(3);
    let (mount_root, mount_point) = (own.next()?, own.next()?);
    wanted.then(|| (unescape(mount_root), unescape(mount_point)))
}

/// Undoes the octal escapes that mountinfo uses for space, tab, newline and backslash.
fn unescape(text: &str) -> String {
    let mut plain = text.to_owned();
    for (escape, character) in [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")] {
        plain = plain.replace(escape, character);
    }
    plain
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
        let v2 = "29 23 0:26 / /sys/fs/cgroup/a\\040b rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
        assert_eq!(mount(v1, Version::V1), Some(("/docker/abc".into(), "/sys/fs/cgroup/hugetlb".into())));
        assert_eq!(mount(v1, Version::V2), None);
        assert_eq!(mount(v2, Version::V2), Some(("/".into(), "/sys/fs/cgroup/a b".into())));
        assert_eq!(mount("garbage", Version::V2), None);
    }
}
