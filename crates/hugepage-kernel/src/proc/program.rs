//! The program that a process runs and where it works, by the kernel's own links (/proc/PID/exe, /proc/PID/cwd, proc(5)).

use std::os::unix::fs::MetadataExt;

use crate::Root;
use crate::proc::process::link;

/// The file of a program that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramFile {
    /// The owner of the file.
    pub owner: u32,
    /// The device and the inode of the file.
    pub inode: (u64, u64),
    is_deleted: bool,
}

impl ProgramFile {
    /// Whether it is what this program sees at the path that `pid` runs, or was there until it was deleted, as an upgrade does it. Who
    /// mounts something over a directory in a mount namespace of its own gets the path, not the file. Where this program has
    /// another root directory than `pid`, the path says nothing: only root changes it outside of a user namespace.
    pub fn is_at_its_path(&self, root: &Root, pid: i32) -> bool {
        // A tree has no program to compare.
        let Ok(Some(path)) = link(root, pid, "exe") else {
            return self.is_deleted;
        };
        let inode = |path: &str| {
            root.metadata(path)
                .ok()
                .map(|found| (found.dev(), found.ino()))
        };
        let has_own_root = || inode(&format!("/proc/{pid}/root")) != inode("/");
        self.is_deleted || inode(&path) == Some(self.inode) || has_own_root()
    }
}

/// The owner, and device and inode, of the directory in which `pid` works, by the kernel's own link; `None` if that is not visible,
/// and in a tree, whose users are none.
pub fn working_directory(root: &Root, pid: i32) -> Option<(u32, (u64, u64))> {
    if root.is_tree() {
        return None;
    }
    let found = root.metadata(&format!("/proc/{pid}/cwd")).ok()?;
    Some((found.uid(), (found.dev(), found.ino())))
}

/// The program that `pid` runs, by the kernel's own link; `None` if that is not visible, and in a tree, whose users are none.
pub fn file(root: &Root, pid: i32) -> Option<ProgramFile> {
    if root.is_tree() {
        return None;
    }
    // Its file system may not answer.
    let found = root.metadata(&format!("/proc/{pid}/exe")).ok()?;
    Some(ProgramFile {
        owner: found.uid(),
        inode: (found.dev(), found.ino()),
        is_deleted: found.nlink() == 0,
    })
}
