//! The program that a process runs, by the kernel's own link to the file (/proc/PID/exe, proc(5)).

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
    /// mounts something over a directory in a mount namespace of its own gets the path, not the file.
    pub fn is_at_its_path(&self, root: &Root, pid: i32) -> bool {
        let is_there = || root.inode(&link(root, pid, "exe").ok().flatten()?);
        self.is_deleted || is_there() == Some(self.inode)
    }
}

/// The program that `pid` runs, by the kernel's own link to the file; `None` if that is not visible, and for a capture, whose files
/// belong to no user of its host.
#[expect(clippy::disallowed_methods, reason = "the kernel's own link, /proc/PID/exe")]
pub fn file(root: &Root, pid: i32) -> Option<ProgramFile> {
    if root.is_tree() {
        return None;
    }
    let found = std::fs::metadata(root.path(&format!("/proc/{pid}/exe"))).ok()?;
    Some(ProgramFile { owner: found.uid(), inode: (found.dev(), found.ino()), is_deleted: found.nlink() == 0 })
}
