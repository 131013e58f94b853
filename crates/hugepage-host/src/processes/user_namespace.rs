//! The user namespaces that a process is in, up to this program's own (user_namespaces(7), ioctl_ns(2)). Every user can make one.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt;

use hugepage_kernel::Root;
use hugepage_kernel::proc::namespace;

/// The most levels that the kernel lets namespaces have (`32` in create_user_ns).
const MAX_LEVELS: usize = 32;

/// Whether `pid` is in this program's user namespace, or each one from its own up to that was made by root. Taken for granted where
/// that is not visible: without privilege nothing else of the process is.
pub fn is_roots(root: &Root, pid: i32) -> bool {
    root.is_tree() || namespace::is_own(root, pid, "user") || is_made_by_root(root, pid).unwrap_or(false)
}

fn is_made_by_root(root: &Root, pid: i32) -> io::Result<bool> {
    let open = |process: &str| root.open(&format!("/proc/{process}/ns/user")).map_err(io::Error::other);
    let identity = |namespace: &File| namespace.metadata().map(|found| (found.dev(), found.ino()));
    let own = identity(&open("self")?)?;
    let mut namespace = open(&pid.to_string())?;
    for _ in 0..=MAX_LEVELS {
        if identity(&namespace)? == own {
            return Ok(true);
        }
        if owner(&namespace)? != 0 {
            return Ok(false);
        }
        namespace = parent(&namespace)?;
    }
    Ok(false)
}

/// NS_GET_OWNER_UID (Linux 4.11): the user that made it, as this program's namespace has it.
fn owner(namespace: &File) -> io::Result<u32> {
    const NS_GET_OWNER_UID: libc::Ioctl = libc::_IO(0xb7, 4);
    let mut uid: libc::uid_t = u32::MAX;
    // SAFETY: the kernel writes one uid_t, which outlives the call.
    #[allow(unsafe_code)]
    let result = unsafe { libc::ioctl(namespace.as_raw_fd(), NS_GET_OWNER_UID, &raw mut uid) };
    if result == 0 { Ok(uid) } else { Err(io::Error::last_os_error()) }
}

/// NS_GET_PARENT (Linux 4.9); an error above this program's own.
fn parent(namespace: &File) -> io::Result<File> {
    const NS_GET_PARENT: libc::Ioctl = libc::_IO(0xb7, 2);
    // SAFETY: the call takes no argument, and returns a new descriptor that nobody else has.
    #[allow(unsafe_code)]
    unsafe {
        match libc::ioctl(namespace.as_raw_fd(), NS_GET_PARENT) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(File::from_raw_fd(descriptor)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// A child of this user's in a namespace of its own: root's is trusted, nobody else's, as deep as it may be.
    #[test]
    fn who_made_the_namespace() {
        let root = Root::live();
        assert!(is_roots(&root, i32::try_from(std::process::id()).unwrap()));
        for (arguments, is_trusted) in [
            (&["--user", "--map-root-user", "cat"][..], rustix::process::geteuid().is_root()),
            (&["--setuid", "65534", "unshare", "--user", "--map-root-user", "cat"], false),
            (&["--setuid", "65534", "unshare", "-Ur", "unshare", "-Ur", "cat"], false),
        ] {
            let mut command = Command::new("unshare");
            let Ok(mut child) = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
                continue;
            };
            let pid = i32::try_from(child.id()).unwrap();
            let runs_cat = || std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "cat\n");
            let ended = (0..500).find_map(|_| {
                std::thread::sleep(std::time::Duration::from_millis(10));
                runs_cat().then_some(false).or_else(|| child.try_wait().unwrap().map(|_| true))
            });
            // Where users may make none it has ended. Without CAP_SYS_PTRACE, as in a container, another user's is not visible.
            if ended == Some(false) {
                let is_visible = std::fs::read_link(format!("/proc/{pid}/ns/user")).is_ok();
                assert_eq!(is_roots(&root, pid), is_trusted || !is_visible, "{arguments:?}");
            }
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(!is_made_by_root(&root, i32::MAX).unwrap_or(false));
    }
}
