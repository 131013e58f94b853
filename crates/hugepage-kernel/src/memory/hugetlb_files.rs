//! Files of hugetlbfs: their pages stay in use when no process maps them (admin-guide/mm/hugetlbpage, Using Huge Pages).

use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{major, minor};

use crate::host::mounts;
use crate::{Bytes, Root};

/// More files and directories of one mount are not looked at.
const MAX_ENTRIES: usize = 1000;
/// The unit of `st_blocks` (stat(2)).
const BLOCK: u64 = 512;
/// HUGETLBFS_MAGIC (magic.h).
const MAGIC: u64 = 0x9584_58f6;

/// A file with pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HugetlbFile {
    /// The device (major, minor) and inode, as mappings show them.
    pub id: ((u32, u32), u64),
    /// The memory in its pages.
    pub memory: Bytes,
}

/// The mount points of this host's hugetlbfs with their files; without those that may not be listed, or have too many.
pub fn mounted(root: &Root) -> Vec<(String, Vec<HugetlbFile>)> {
    if !root.is_live() {
        return Vec::new();
    }
    let text = root.read(mounts::PATH).unwrap_or_default();
    let points = mounts::parse(&text).filter(|mount| mount.kind == "hugetlbfs").map(|mount| mount.point);
    let is_hugetlbfs = |point: &String| root.find(point, true).is_ok_and(|top| top.file_system() == Some(MAGIC));
    points.filter(is_hugetlbfs).filter_map(|point| files(root, &point).ok().map(|files| (point, files))).collect()
}

/// The files with pages of the file system at `top`.
fn files(root: &Root, top: &str) -> io::Result<Vec<HugetlbFile>> {
    let device = root.find(top, true)?.metadata.dev();
    let (mut found, mut directories, mut entries) = (Vec::new(), vec![top.to_owned()], 0);
    while let Some(directory) = directories.pop() {
        for name in root.find(&directory, true)?.names()? {
            entries += 1;
            if entries > MAX_ENTRIES {
                return Err(io::Error::other("too many files"));
            }
            let path = format!("{directory}/{}", name?);
            let metadata = match root.find(&path, false) {
                Ok(file) => file.metadata,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if metadata.dev() != device {
                continue;
            }
            if metadata.is_dir() {
                directories.push(path);
            } else if metadata.is_file() && metadata.blocks() > 0 {
                let id = ((major(device), minor(device)), metadata.ino());
                found.push(HugetlbFile { id, memory: Bytes(metadata.blocks().saturating_mul(BLOCK)) });
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_with_memory_below_a_directory() {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("libvirt/qemu")).unwrap();
        fs::write(tree.path().join("libvirt/qemu/ram"), vec![1; 16384]).unwrap();
        fs::write(tree.path().join("empty"), "").unwrap();
        std::os::unix::fs::symlink("/", tree.path().join("elsewhere")).unwrap();
        let top = tree.path().to_str().unwrap();
        let found = files(&Root::live(), top).unwrap();
        let ram = fs::metadata(tree.path().join("libvirt/qemu/ram")).unwrap();
        let id = ((major(ram.dev()), minor(ram.dev())), ram.ino());
        assert_eq!(found, [HugetlbFile { id, memory: Bytes(ram.blocks() * BLOCK) }]);
        for number in 0..MAX_ENTRIES {
            fs::write(tree.path().join(number.to_string()), "").unwrap();
        }
        assert!(files(&Root::live(), top).is_err());
        assert!(mounted(&Root::live()).iter().all(|(point, _)| point.starts_with('/')));
    }
}
