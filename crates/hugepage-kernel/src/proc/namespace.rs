//! Namespaces (namespaces(7)): whether a process sees the same files and the same host name as this program.

use crate::Root;
use crate::host::mounts;

/// The files that `pid` sees, where those are not this program's: those of its container or chroot(2), below the root directory
/// that the kernel shows for it. `None` if they are this program's, or that may not be seen.
pub fn container(root: &Root, pid: i32) -> Option<Root> {
    let its = format!("/proc/{pid}/root");
    (!is_own(root, pid, "mnt") || root.read_link(&its).is_ok_and(|top| top != "/"))
        .then(|| root.below(&its))
}

/// Whether /proc certainly shows the processes of a container alone: a PID namespace that is not the host's, whose number is a
/// constant of the kernel (include/linux/proc_ns.h, `PROC_PID_INIT_INO`).
pub fn shows_container_alone(root: &Root) -> bool {
    root.read_link("/proc/self/ns/pid")
        .is_ok_and(|link| link != "pid:[4026531836]")
}

/// Whether the files below / are certainly those of a container, and not of the host that boots: the processes are its alone, or
/// the root file system is one of layers, as images have. /.dockerenv is no sign: a host may be made from an image.
pub fn shows_files_of_container(root: &Root) -> bool {
    let is_of_layers =
        mounts::seen_at(root, "/").is_some_and(|mount| mount.kind.ends_with("overlay"));
    shows_container_alone(root) || is_of_layers
}

/// Whether `pid` is in this program's namespace of this kind (`ipc`, `pid`, `mnt`, `uts`). Where that is not visible, it is taken for
/// granted: kernels before 3.0 show none, and without privilege nothing else of the process is visible.
pub fn is_own(root: &Root, pid: i32, kind: &str) -> bool {
    let namespace = |process: &str| root.read_link(&format!("/proc/{process}/ns/{kind}")).ok();
    namespace("self")
        .zip(namespace(&pid.to_string()))
        .is_none_or(|(own, its)| own == its)
}

/// The number of the mount namespace of `pid`: 4026531841; no other one has it as long as this one exists.
pub fn number(root: &Root, pid: i32) -> Option<String> {
    let link = root.read_link(&format!("/proc/{pid}/ns/mnt")).ok()?;
    Some(link.strip_prefix("mnt:[")?.strip_suffix(']')?.to_owned())
}
