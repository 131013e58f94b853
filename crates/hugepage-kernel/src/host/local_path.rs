//! Whether a look at a path may wait for somebody else: a server of the network, or a program. No signal ends such a wait.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use super::mounts::{self, Mount};
use crate::Root;

/// The types of file systems that wait for nobody: the kernel's own, on disks and in memory.
const LOCAL: [&str; 18] = [
    "bcachefs", "btrfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "iso9660", "jfs",
    "overlay", "ramfs", "rootfs", "squashfs", "tmpfs", "vfat", "xfs", "zfs",
];
/// The symbolic links that a path may have (path_resolution(7)).
const MAX_LINKS: usize = 40;

/// A path without symbolic links.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// Where it leads.
    pub path: PathBuf,
    /// The symbolic links on the way: one that is replaced leads to another file, which may be an old one.
    pub links: Vec<Link>,
    /// Whether something is mounted at just this path.
    pub is_mount_point: bool,
}

/// A symbolic link.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    /// Where it is, without other links.
    pub path: PathBuf,
    /// What it has.
    pub target: PathBuf,
}

/// The mounts of this process, to look at paths that were named by others.
#[derive(Debug)]
pub struct LocalPaths {
    mounts: Vec<Mount>,
    /// The mount point of what is used anyway, whatever its type. Empty if that is on a chroot's root, which need not be a mount point:
    /// then no other mount point leads there.
    used: String,
}

impl LocalPaths {
    /// For this process, which uses `directory` anyway; the error is why the mounts can't be read.
    pub fn new(root: &Root, directory: &Path) -> Result<Self, String> {
        let mounts = mounts::read(root).map_err(|error| error.to_string())?;
        Ok(Self::of(mounts, directory))
    }

    fn of(mounts: Vec<Mount>, directory: &Path) -> Self {
        let used = mounts::above(&mounts, directory)
            .map(|mount| mount.point.clone())
            .unwrap_or_default();
        Self { mounts, used }
    }

    /// The absolute `path` without symbolic links; the error is why a look at it may wait, a clause. Each directory is looked
    /// at only after its own file system is known to be local.
    #[expect(
        clippy::disallowed_methods,
        reason = "links in the way of a file of the server, on local file systems"
    )]
    pub fn resolve(&self, path: &Path) -> Result<Resolved, String> {
        let mut found = PathBuf::from("/");
        let mut rest = names(path);
        let mut links = Vec::new();
        while let Some(name) = rest.pop_front() {
            if name == ".." {
                found.pop();
                continue;
            }
            found.push(name);
            self.check(&found)?;
            let Ok(target) = std::fs::read_link(&found) else {
                continue;
            };
            if links.len() == MAX_LINKS {
                return Err(format!(
                    "\"{}\" has too many symbolic links",
                    path.display()
                ));
            }
            links.push(Link {
                path: found.clone(),
                target: target.clone(),
            });
            found.pop();
            if target.is_absolute() {
                found = PathBuf::from("/");
            }
            let mut names = names(&target);
            names.append(&mut rest);
            rest = names;
        }
        Ok(Resolved {
            is_mount_point: self
                .mounts
                .iter()
                .any(|mount| found == Path::new(&mount.point)),
            path: found,
            links,
        })
    }

    fn check(&self, path: &Path) -> Result<(), String> {
        match mounts::above(&self.mounts, path) {
            Some(mount) if LOCAL.contains(&&*mount.kind) => Ok(()),
            mount if mount.map_or("", |mount| &mount.point) == self.used => Ok(()),
            Some(mount) => Err(format!("it is on {}, which may not answer", mount.kind)),
            None => Err("its file system is unknown".to_owned()),
        }
    }
}

/// The names in a path, `..` among them.
fn names(path: &Path) -> VecDeque<OsString> {
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "a directory of the test")]

    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_may_wait_is_not_looked_at() {
        let directory =
            std::env::temp_dir().join(format!("hugepage-local-path.{}", std::process::id()));
        std::fs::create_dir_all(directory.join("conf")).unwrap();
        let directory = std::fs::canonicalize(&directory).unwrap();
        let mount = |point: &str, kind: &str| Mount {
            device: (0, 26),
            root: "/".to_owned(),
            point: point.to_owned(),
            kind: kind.to_owned(),
            options: Vec::new(),
        };
        let silent = directory.join("silent");
        symlink(&silent, directory.join("conf/link")).unwrap();
        symlink("../conf", directory.join("conf/own")).unwrap();
        symlink("loop", directory.join("conf/loop")).unwrap();
        let mounts = [
            mount("/", "ext4"),
            mount(silent.to_str().unwrap(), "nfs4"),
            mount("/net", "autofs"),
        ];
        let paths = LocalPaths::of(mounts.to_vec(), Path::new("/"));
        let resolve = |path: &str| paths.resolve(&directory.join(path)).map(|found| found.path);
        let links = paths.resolve(&directory.join("conf/own/a")).unwrap().links;
        let found = ["conf/own/a", "conf/missing/b", "conf/link/c", "conf/loop"].map(resolve);
        let other = paths
            .resolve(Path::new("/net/host/file"))
            .map(|found| found.path);
        let used = LocalPaths::of(mounts.to_vec(), &silent.join("data"))
            .resolve(&silent.join("data/postgresql.conf"));
        let used = used.map(|found| found.path);
        let chroot = |data: &Path| {
            LocalPaths::of(mounts[1..].to_vec(), data)
                .resolve(&directory.join("conf/own/a"))
                .map(|found| found.path)
        };
        let chroot = [Path::new("/srv/data"), &silent].map(chroot);
        std::fs::remove_dir_all(&directory).unwrap();
        let waits = |kind: &str| Err(format!("it is on {kind}, which may not answer"));
        assert_eq!(found[0], Ok(directory.join("conf/a")));
        assert_eq!(
            links,
            [Link {
                path: directory.join("conf/own"),
                target: "../conf".into()
            }]
        );
        assert_eq!(found[1], Ok(directory.join("conf/missing/b")));
        assert_eq!(found[2], waits("nfs4"));
        assert!(
            found[3]
                .as_ref()
                .unwrap_err()
                .contains("too many symbolic links"),
            "{:?}",
            found[3]
        );
        assert_eq!(other, waits("autofs"));
        assert_eq!(used, Ok(silent.join("data/postgresql.conf")));
        // Its root is no mount point. What lies there is used if the data directory lies there.
        let unknown = Err("its file system is unknown".to_owned());
        assert_eq!(chroot, [Ok(directory.join("conf/a")), unknown]);
    }
}
