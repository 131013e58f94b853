//! Sets the pool for the next boot, in sysctl.d, or in tmpfiles.d for sizes that sysctl can't set, and finds what overrides it.

use anyhow::Context;
use hugepage_assess::advice::command::SYSCTL_FILE;
use hugepage_kernel::{Meminfo, NextBoot, PageSize, Pages, PoolAtBoot, Root, if_there};

use crate::privileges;

/// Applied early at boot by systemd-tmpfiles-setup.service (tmpfiles.d(5)).
const TMPFILES_FILE: &str = "/etc/tmpfiles.d/postgresql-hugepages.conf";
/// The files that this module writes.
pub const FILES: [&str; 2] = [SYSCTL_FILE, TMPFILES_FILE];
const FILE_HEADER: &str =
    "# Huge pages of this host. Maintained by hugepage-sidecar apply --persist.\n";

/// The line that sets a pool at boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootSetting {
    /// The file of the line.
    pub file: &'static str,
    /// The beginning of the line, with single blanks.
    name: String,
    /// The line itself, without a newline.
    pub line: String,
}

impl BootSetting {
    /// The line for the pool of `size`. A sysctl exists for the default size only.
    fn for_pool(size: PageSize, is_default: bool, pages: Pages) -> Self {
        if is_default {
            let name = "vm.nr_hugepages".to_owned();
            return Self {
                file: SYSCTL_FILE,
                line: format!("{name} = {pages}"),
                name,
            };
        }
        let name = format!(
            "w /sys/kernel/mm/hugepages/{}/nr_hugepages",
            size.sysfs_name()
        );
        Self {
            file: TMPFILES_FILE,
            line: format!("{name} - - - - {pages}"),
            name,
        }
    }

    /// The line for the pool of `size` of this host.
    pub fn new(root: &Root, size: PageSize, pages: Pages) -> anyhow::Result<Self> {
        Ok(Self::for_pool(
            size,
            Meminfo::read(root)?.huge_page_size == Some(size),
            pages,
        ))
    }

    /// Writes the line and keeps the other lines of the file. On an error the old file is unchanged.
    pub fn write(&self, root: &Root) -> anyhow::Result<()> {
        let old = if_there(root.read(self.file))?;
        let path = root.path(self.file);
        let written =
            privileges::replace_file(&path, self.inserted_into(old.as_deref()).as_bytes());
        written.with_context(|| format!("could not write {}; it is unchanged", path.display()))
    }

    /// The text of the file with this line exactly once.
    fn inserted_into(&self, old: Option<&str>) -> String {
        let mut lines: Vec<&str> = old.unwrap_or(FILE_HEADER).lines().collect();
        let first = lines.iter().position(|line| self.matches_line(line));
        lines.retain(|line| !self.matches_line(line));
        lines.insert(first.unwrap_or(lines.len()), &self.line);
        lines.join("\n") + "\n"
    }

    /// Whether a line of a file sets the same pool: `vm.nr_hugepages=1`, `-vm/nr_hugepages = 1`, `w  /sys/... - - - - 1`.
    fn matches_line(&self, line: &str) -> bool {
        let words = |text: &str| {
            text.split_ascii_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        match self.name.split_once(' ') {
            Some(_) => words(line).starts_with(&words(&self.name)),
            None => {
                let name = line.split_once('=').map_or("", |(name, _)| name.trim());
                name.trim_start_matches('-').trim_start().replace('/', ".") == self.name
            }
        }
    }
}

/// A warning if the next boot sets another number than `pages`, or may do so.
pub fn override_warning(root: &Root, size: PageSize, pages: Pages) -> Option<String> {
    let pool = NextBoot::read(root).pool(size);
    match &pool {
        PoolAtBoot::Set(other, by) | PoolAtBoot::Told(other, by) => (*other != pages)
            .then(|| format!("At the next boot {by} sets {other} pages of {size}.")),
        pool => pool
            .unknown()
            .map(|why| format!("The pool of {size} pages after the next boot is unknown: {why}.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_the_line_once_and_keep_others() {
        let sysctl = BootSetting::for_pool(PageSize::from_kib(2048).unwrap(), true, Pages(10));
        let tmpfiles = BootSetting::for_pool(PageSize::from_kib(1 << 20).unwrap(), false, Pages(4));
        let file = "w /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages - - - -";
        for (setting, old, new) in [
            (&sysctl, None, format!("{FILE_HEADER}vm.nr_hugepages = 10\n")),
            (&sysctl, Some("".into()), "vm.nr_hugepages = 10\n".into()),
            (&sysctl, Some("vm.nr_hugepages=3".into()), "vm.nr_hugepages = 10\n".into()),
            (
                &sysctl,
                Some(
                    "# ours\nvm.hugetlb_shm_group = 5\n-vm/nr_hugepages =3\nvm.swappiness = 1\nvm.nr_hugepages = 4\n"
                        .into(),
                ),
                "# ours\nvm.hugetlb_shm_group = 5\nvm.nr_hugepages = 10\nvm.swappiness = 1\n".into(),
            ),
            (
                &sysctl,
                Some("vm.nr_hugepages_mempolicy = 3\n".into()),
                "vm.nr_hugepages_mempolicy = 3\nvm.nr_hugepages = 10\n".into(),
            ),
            (&tmpfiles, None, format!("{FILE_HEADER}{file} 4\n")),
            (&tmpfiles, Some(format!("d /run/x\n{}   9\n", file.replace(' ', "  "))), format!("d /run/x\n{file} 4\n")),
        ] {
            assert_eq!(setting.inserted_into(old.as_deref()), new, "{old:?}");
        }
    }

    #[test]
    fn name_the_overriding_file() {
        let tree = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = tree.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let (root, size) = (Root::at(tree.path()), PageSize::from_kib(2048).unwrap());
        write("proc/cmdline", "ro\n");
        write("proc/uptime", "9.00 9.00\n");
        write("run/systemd/system/own.conf", "");
        let found = || override_warning(&root, size, Pages(10));
        write(
            "proc/meminfo",
            "MemTotal: 8388608 kB\nHugePages_Total: 10\nHugepagesize: 2048 kB\n",
        );
        write("etc/sysctl.d/README", "");
        BootSetting::for_pool(size, true, Pages(10))
            .write(&root)
            .unwrap();
        assert_eq!(found(), None);
        write("etc/sysctl.d/99-other.conf", "vm.nr_hugepages = 7\n");
        assert_eq!(
            found().unwrap(),
            "At the next boot /etc/sysctl.d/99-other.conf sets 7 pages of 2 MB."
        );
        write(
            "etc/sysctl.d/99-other.conf",
            "vm.nr_overcommit_hugepages = 7\n",
        );
        assert_eq!(
            found().unwrap(),
            "The pool of 2 MB pages after the next boot is unknown: /etc/sysctl.d/99-other.conf sets \
             vm.nr_overcommit_hugepages = 7."
        );
    }
}
