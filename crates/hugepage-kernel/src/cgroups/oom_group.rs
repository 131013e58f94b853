//! `memory.oom.group`: whether the kernel kills all processes of a cgroup at once when memory runs out (admin-guide/cgroup-v2,
//! Linux 4.19). systemd sets it for `OOMPolicy=kill`, the kubelet for each container since Kubernetes 1.28.

use crate::cgroups::cgroup::{Hierarchy, levels};
use crate::source::root::if_there;
use crate::{ReadError, Root};

/// The value of `oom_score_adj` that spares a process (`OOM_SCORE_ADJ_MIN`), and so a postmaster whose group is killed.
const SPARED: &str = "-1000";

impl Hierarchy {
    /// The file of the nearest cgroup of `process` that is killed as one with it. `None` where none is visible, or it is spared.
    pub fn oom_group(&self, root: &Root, process: &str) -> Result<Option<String>, ReadError> {
        let Some(path) = self.path_of(root, process)? else { return Ok(None) };
        for level in levels(&path) {
            let file = format!("{}/{level}", self.mount_point());
            let file = format!("{}/memory.oom.group", file.trim_end_matches('/'));
            let value = if_there(root.read_short(&file, |text| text.trim() == "1"))?;
            if value == Some(true) {
                let is_spared = |text: &str| text.trim() == SPARED;
                let is_spared = root.read_short(&format!("/proc/{process}/oom_score_adj"), is_spared)?;
                return Ok((!is_spared).then_some(file));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_nearest_group_that_is_killed_as_one() {
        let tree = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/7/cgroup", "0::/system.slice/pg.service\n");
        write("proc/7/oom_score_adj", "-900\n");
        let root = Root::at(tree.path());
        let slice = "sys/fs/cgroup/system.slice";
        let of = || {
            let mounts = "29 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n";
            write("proc/self/mountinfo", mounts);
            Hierarchy::find_of(&root, "7").unwrap().unwrap().oom_group(&root, "7").unwrap()
        };
        assert_eq!(of(), None, "no file, as before Linux 4.19");
        write(&format!("{slice}/pg.service/memory.oom.group"), "0\n");
        write(&format!("{slice}/memory.oom.group"), "1\n");
        assert_eq!(of().as_deref(), Some("/sys/fs/cgroup/system.slice/memory.oom.group"));
        write(&format!("{slice}/pg.service/memory.oom.group"), "1\n");
        assert_eq!(of().as_deref(), Some("/sys/fs/cgroup/system.slice/pg.service/memory.oom.group"));
        write("proc/7/oom_score_adj", "-1000\n");
        assert_eq!(of(), None, "the postmaster lives and starts the recovery");
    }
}
