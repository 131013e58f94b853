//! The identity of this host.

use crate::proc::namespace;
use crate::stranger::{InstanceFiles, limit};
use crate::{ReadError, Root, if_there};

/// The host's name, as in uname(2).
pub fn host_name(root: &Root) -> Result<String, ReadError> {
    line(root, "/proc/sys/kernel/hostname")
}

/// The host's name as the process `pid` sees it, if that is another one: that of its container, as its runtime wrote it to
/// the container's /etc/hostname. `None` if it sees this host's, or if that file may not be read.
pub fn host_name_of(root: &Root, pid: i32, files: &InstanceFiles) -> Option<String> {
    let name = (!namespace::is_own(root, pid, "uts"))
        .then(|| files.read_text("/etc/hostname", limit::HOST_NAME))?;
    Some(name.ok()?.trim().to_owned()).filter(|name| !name.is_empty())
}

/// The identifier of the running boot (random(4)); `None` on a kernel without it.
pub fn boot_id(root: &Root) -> Result<Option<String>, ReadError> {
    if_there(line(root, "/proc/sys/kernel/random/boot_id"))
}

/// The identifier of this installation (machine-id(5)); empty if there is none.
pub fn machine_id(root: &Root) -> String {
    line(root, "/etc/machine-id").unwrap_or_default()
}

fn line(root: &Root, path: &str) -> Result<String, ReadError> {
    root.read_short(path, |text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn read_the_host_name_of_a_container() {
        let tree = tempfile::tempdir().unwrap();
        for (process, namespace) in [
            ("self", "uts:[1]"),
            ("7", "uts:[1]"),
            ("8", "uts:[2]"),
            ("9", "uts:[3]"),
        ] {
            let process = tree.path().join("proc").join(process);
            fs::create_dir_all(process.join("ns")).unwrap();
            fs::create_dir_all(process.join("root/etc")).unwrap();
            symlink(namespace, process.join("ns/uts")).unwrap();
        }
        fs::write(
            tree.path().join("proc/8/root/etc/hostname"),
            "0a1b2c3d4e5f\n",
        )
        .unwrap();
        let root = Root::at(tree.path());
        let name = |pid| {
            let files = InstanceFiles::own(&root.below(&format!("/proc/{pid}/root")));
            host_name_of(&root, pid, &files)
        };
        assert_eq!(
            [name(7), name(8), name(9), name(10)],
            [None, Some("0a1b2c3d4e5f".to_owned()), None, None]
        );
    }
}
