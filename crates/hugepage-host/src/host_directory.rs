//! Where the host has the files of a container: its volume, or the layer of its image that is written (mount_namespaces(7)).

use std::path::Path;

use hugepage_kernel::host::mounts::{self, Mount};
use hugepage_kernel::{InstanceFiles, Root};

/// The directory of the host that process `pid` sees at the mount point above `path`; `None` if that is not visible here.
pub(super) fn host_directory(root: &Root, pid: i32, path: &str) -> Option<String> {
    let its = root.read(&format!("/proc/{pid}/mountinfo")).ok()?;
    let its: Vec<_> = mounts::parse(&its).collect();
    let found = find(&its, mounts::read(root).ok()?, path)?;
    // In a container of its own this program may have nothing there.
    (!InstanceFiles::own(root).is_absent(&found)).then_some(found)
}

fn find(its: &[Mount], own: Vec<Mount>, path: &str) -> Option<String> {
    let above = mounts::above(its, Path::new(path))?;
    if above.kind == "overlay" {
        let upper = above
            .options
            .iter()
            .find_map(|option| option.strip_prefix("upperdir="))?;
        return upper.starts_with('/').then(|| upper.to_owned());
    }
    let has_it = |mount: &Mount| {
        mount.device == above.device && Path::new(&above.root).starts_with(&mount.root)
    };
    let ours = own
        .into_iter()
        .filter(has_it)
        .max_by_key(|mount| mount.root.len())?;
    let below = Path::new(&above.root).strip_prefix(&ours.root).ok()?;
    Path::new(&ours.point)
        .join(below)
        .to_str()
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n40 22 8:2 /@docker /var/lib/docker rw - btrfs /dev/sdb rw\n";

    fn found(its: &str, path: &str) -> Option<String> {
        let its: Vec<_> = mounts::parse(its).collect();
        find(&its, mounts::parse(OWN).collect(), path)
    }

    #[test]
    fn where_the_host_has_it() {
        let overlay = "50 40 0:50 / / rw - overlay overlay rw,lowerdir=/a:/b,upperdir=/var/lib/docker/overlay2/x/diff,workdir=/w\n";
        let volume = "51 50 8:1 /srv/volumes/y/_data /var/lib/postgresql rw - ext4 /dev/sda1 rw\n";
        let other = "52 50 8:2 /@docker/volumes/z /data rw - btrfs /dev/sdb rw\n";
        let shm = "53 50 0:99 / /dev/shm rw - tmpfs shm rw\n";
        let all = &[overlay, volume, other, shm].concat();
        for (path, wanted) in [
            ("/opt/data", Some("/var/lib/docker/overlay2/x/diff")),
            ("/var/lib/postgresql/data", Some("/srv/volumes/y/_data")),
            ("/data", Some("/var/lib/docker/volumes/z")),
            ("/dev/shm/data", None),
        ] {
            assert_eq!(found(all, path), wanted.map(str::to_owned), "{path}");
        }
    }
}
