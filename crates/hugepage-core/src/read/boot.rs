//! What sets the huge page pools at the next boot: the kernel's command line, sysctl.d, a profile of tuned, and what
//! writes the pools' files later.

use std::collections::BTreeMap;

use crate::read::Root;
use crate::read::boot_loader;
use crate::read::boot_writers::{self, PoolWrite};
use crate::read::root::if_there;
use crate::read::sysctl::{self, Assignment};
use crate::{Bytes, PageSize, Pages, ReadError};

/// All settings of the pools, each with the file that it comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NextBoot {
    /// `hugepagesz=` and `hugepages=` of the kernel's command line; no size means the default one. That of the boot
    /// loader where all its entries agree, else the running kernel's.
    pub command_line: Vec<(Option<PageSize>, Pages)>,
    /// The file that the command line is from.
    pub command_line_file: String,
    /// `sysctl.vm.nr_hugepages=` of that command line, which sysctl.d overrides.
    pub kernel_sysctl: Option<Pages>,
    /// What sysctl.d assigns.
    pub sysctl: BTreeMap<String, Assignment>,
    /// What tuned's active profile assigns.
    pub tuned: BTreeMap<String, Assignment>,
    /// Whether sysctl.d overrides tuned (`reapply_sysctl`, its default).
    pub sysctl_wins: bool,
    /// What tmpfiles.d writes after all that.
    pub tmpfiles: Vec<PoolWrite>,
    /// What units raise pools to.
    pub units: Vec<PoolWrite>,
    /// Units that set a pool to a number that is not understood.
    pub other_units: Vec<String>,
}

impl NextBoot {
    /// Reads all settings.
    pub fn read(root: &Root) -> Result<Self, ReadError> {
        let running = if_there(root.read(COMMAND_LINE))?.unwrap_or_default();
        let of = |line: &str| (pools_of(line), kernel_sysctl_of(line));
        let entries = boot_loader::command_lines(root);
        let ((command_line, kernel_sysctl), command_line_file) = match entries.split_first() {
            Some(((line, file), others)) if others.iter().all(|(other, _)| of(other) == of(line)) => {
                (of(line), file.clone())
            }
            _ => (of(&running), COMMAND_LINE.to_owned()),
        };
        let (units, other_units) = boot_writers::units(root)?;
        Ok(Self {
            command_line,
            command_line_file,
            kernel_sysctl,
            tmpfiles: boot_writers::tmpfiles(root)?,
            units,
            other_units,
            sysctl: sysctl::at_next_boot(root)?,
            tuned: tuned(root)?,
            sysctl_wins: sysctl_wins(root)?,
        })
    }

    /// What `name`, such as `vm.nr_hugepages`, will be set to, by sysctl.d or tuned.
    pub fn assignment(&self, name: &str) -> Option<&Assignment> {
        let (sysctl, tuned) = (self.sysctl.get(name), self.tuned.get(name));
        if self.sysctl_wins { sysctl.or(tuned) } else { tuned.or(sysctl) }
    }

    /// The pages that the pool of `size` will have, and the file that sets them; `None` if no file does.
    pub fn pages(&self, size: PageSize, is_default: bool) -> Option<(Pages, String)> {
        let of_pool = |write: &&PoolWrite| write.size.map_or(is_default, |wanted| wanted == size);
        let whole = self.tmpfiles.iter().filter(of_pool).rfind(|write| write.node.is_none());
        // The last line for a node counts; together they are the pool.
        let by_node: BTreeMap<_, _> =
            self.tmpfiles.iter().filter(of_pool).filter_map(|write| Some((write.node.as_ref()?, write))).collect();
        let written = match by_node.values().next() {
            Some(write) => {
                let sum = by_node.values().fold(Pages(0), |sum, write| sum.saturating_add(write.pages));
                Some((sum, write.file.clone()))
            }
            None => whole.map(|write| (write.pages, write.file.clone())),
        };
        let set = written.or_else(|| self.pages_before(size, is_default));
        // A unit never reduces a pool.
        let raised = self.units.iter().filter(of_pool).max_by_key(|write| write.pages);
        match (set, raised) {
            (Some((pages, _)), Some(unit)) if unit.pages > pages => Some((unit.pages, unit.file.clone())),
            (None, Some(unit)) => Some((unit.pages, unit.file.clone())),
            (set, _) => set,
        }
    }

    /// Before tmpfiles.d and units have their turn.
    fn pages_before(&self, size: PageSize, is_default: bool) -> Option<(Pages, String)> {
        let assigned = self.assignment("vm.nr_hugepages").filter(|_| is_default);
        if let Some(Assignment { value, file }) = assigned
            && let Ok(pages) = value.parse()
        {
            return Some((Pages(pages), file.clone()));
        }
        let of_size = |wanted: &Option<PageSize>| wanted.map_or(is_default, |wanted| wanted == size);
        let of_parameter = self.kernel_sysctl.filter(|_| is_default);
        let of_pools = || self.command_line.iter().rev().find(|(wanted, _)| of_size(wanted)).map(|(_, pages)| *pages);
        Some((of_parameter.or_else(of_pools)?, self.command_line_file.clone()))
    }
}

const COMMAND_LINE: &str = "/proc/cmdline";

/// `hugepages=` applies to the `hugepagesz=` before it, else to the default size (kernel-parameters).
fn pools_of(command_line: &str) -> Vec<(Option<PageSize>, Pages)> {
    let mut size = None;
    let mut pools = Vec::new();
    // With it the kernel skips gigantic pages at boot (hugetlb_hstate_alloc_pages).
    let skips_gigantic = command_line.split_ascii_whitespace().any(|word| word.starts_with("hugetlb_cma="));
    for word in command_line.split_ascii_whitespace() {
        match word.split_once('=') {
            Some(("hugepagesz", value)) => size = memparse(value),
            Some(("hugepages", value)) => pools.extend(pages_of(value).map(|pages| (size, pages))),
            _ => {}
        }
    }
    if skips_gigantic {
        let gigantic = |size: &PageSize| size.bytes() >= Bytes(1 << 30);
        pools.iter_mut().filter(|(size, _)| size.as_ref().is_some_and(gigantic)).for_each(|pool| pool.1 = Pages(0));
    }
    pools
}

/// `70`, or since Linux 5.16 by nodes: `0:70,1:70`.
fn pages_of(value: &str) -> Option<Pages> {
    let count = |part: &str| part.split_once(':').map_or(part, |(_, pages)| pages).parse::<u64>().ok();
    let parts = value.split(',').map(count).collect::<Option<Vec<_>>>()?;
    Some(parts.into_iter().fold(Pages(0), |sum, pages| sum.saturating_add(Pages(pages))))
}

/// `sysctl.vm.nr_hugepages=70` (Linux 5.8).
fn kernel_sysctl_of(command_line: &str) -> Option<Pages> {
    let mut words = command_line.split_ascii_whitespace().rev().filter_map(|word| word.split_once('='));
    let (_, value) = words.find(|(name, _)| name.replace('/', ".") == "sysctl.vm.nr_hugepages")?;
    value.parse().ok().map(Pages)
}

/// A page size as on the kernel's command line: `2M`, `1G`, `65536` (the kernel's memparse).
pub fn memparse(text: &str) -> Option<PageSize> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return None,
    };
    PageSize::new(digits.parse::<u64>().ok()?.checked_shl(shift)?)
}

/// The section [sysctl] of the active profiles and of the profiles that they include (tuned.conf(5)).
fn tuned(root: &Root) -> Result<BTreeMap<String, Assignment>, ReadError> {
    let active = if_there(root.read("/etc/tuned/active_profile"))?.unwrap_or_default();
    let mut found = BTreeMap::new();
    for profile in active.split_ascii_whitespace() {
        add_profile(root, profile, 0, &mut found)?;
    }
    Ok(found)
}

fn add_profile(root: &Root, name: &str, depth: u32, into: &mut BTreeMap<String, Assignment>) -> Result<(), ReadError> {
    const PLACES: [&str; 4] = ["/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned"];
    if depth > 10 || name.contains('/') {
        return Ok(());
    }
    for place in PLACES {
        let path = format!("{place}/{name}/tuned.conf");
        let Some(text) = if_there(root.read(&path))? else { continue };
        let mut section = "";
        let lines = || text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
        for line in lines() {
            if let Some(value) = line.strip_prefix("include").and_then(|rest| rest.trim_start().strip_prefix('=')) {
                for included in value.split(',') {
                    add_profile(root, included.trim(), depth + 1, into)?;
                }
            }
        }
        for line in lines() {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name;
            } else if section == "sysctl"
                && let Some((name, value)) = line.split_once('=')
            {
                let assignment = Assignment { value: value.trim().to_owned(), file: path.clone() };
                into.insert(name.trim().to_owned(), assignment);
            }
        }
        break;
    }
    Ok(())
}

fn sysctl_wins(root: &Root) -> Result<bool, ReadError> {
    let text = if_there(root.read("/etc/tuned/tuned-main.conf"))?.unwrap_or_default();
    let value = text.lines().filter_map(|line| line.split_once('=')).find(|(name, _)| name.trim() == "reapply_sysctl");
    Ok(value.is_none_or(|(_, value)| !matches!(value.trim(), "0" | "false" | "False" | "no" | "off")))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn sizes_of_the_command_line() {
        let gigantic = PageSize::from_kib(1 << 20);
        let huge = PageSize::from_kib(2048);
        let pools =
            pools_of("quiet hugepages=5 hugepagesz=1G hugepages=4 hugepagesz=2048K hugepages=x hugepages=7 a=b");
        assert_eq!(pools, [(None, Pages(5)), (gigantic, Pages(4)), (huge, Pages(7))]);
        for text in ["", "G", "1T", "-1M", "0"] {
            assert_eq!(memparse(text), None, "{text}");
        }
    }

    #[test]
    fn nodes_and_parameters_of_the_command_line() {
        let gigantic = PageSize::from_kib(1 << 20);
        assert_eq!(pools_of("hugepages=0:70,1:71"), [(None, Pages(141))]);
        assert_eq!(pools_of("hugepages=0:70,x"), []);
        assert_eq!(pools_of("hugetlb_cma=4G hugepagesz=1G hugepages=4"), [(gigantic, Pages(0))]);
        assert_eq!(kernel_sysctl_of("a sysctl.vm.nr_hugepages=7 sysctl.vm/nr_hugepages=8 quiet"), Some(Pages(8)));
        assert_eq!(kernel_sysctl_of("vm.nr_hugepages=7"), None);
    }

    /// What tools write for the next boot: our own commands, tmpfiles.d, units, and the boot loader.
    #[test]
    fn later_writers_and_the_boot_loader() {
        let tree = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let (huge, gigantic) = (PageSize::from_kib(2048).unwrap(), PageSize::from_kib(1 << 20).unwrap());
        let root = Root::at(tree.path());
        let pages = |size, default| {
            NextBoot::read(&root).unwrap().pages(size, default).map(|(pages, file)| format!("{pages} {file}"))
        };
        write("proc/cmdline", "quiet hugepages=5\n");
        write(
            "boot/grub/grub.cfg",
            "menuentry x {\n\tlinux /vmlinuz-6.1 ro hugepages=9\n}\n\tlinux /old ro hugepages=9\n",
        );
        assert_eq!(pages(huge, true).as_deref(), Some("9 /boot/grub/grub.cfg"));
        write("boot/loader/entries/a.conf", "linux /vmlinuz\noptions $kernelopts quiet\n");
        write("boot/grub2/grubenv", "# GRUB Environment Block\nkernelopts=ro sysctl.vm.nr_hugepages=11\n");
        assert_eq!(pages(huge, true).as_deref(), Some("11 /boot/loader/entries/a.conf"));
        write("boot/loader/entries/b.conf", "options ro hugepages=12\n");
        assert_eq!(pages(huge, true).as_deref(), Some("5 /proc/cmdline"), "entries differ");
        let unit = include_str!("../advise/fix/hugepages.service.in")
            .replace("@PAGES@", "70")
            .replace("@POOL@", "/sys/kernel/mm/hugepages/hugepages-2048kB");
        write("etc/systemd/system/postgresql-hugepages.service", &unit);
        assert_eq!(pages(huge, true).as_deref(), Some("5 /proc/cmdline"), "it is not enabled");
        write("etc/systemd/system/sysinit.target.wants/postgresql-hugepages.service", "");
        assert_eq!(pages(huge, true).as_deref(), Some("70 /etc/systemd/system/postgresql-hugepages.service"));
        write("etc/sysctl.d/50.conf", "vm.nr_hugepages = 90\n");
        assert_eq!(pages(huge, true).as_deref(), Some("90 /etc/sysctl.d/50.conf"), "a unit never reduces");
        write("usr/lib/tmpfiles.d/x.conf", "w /proc/sys/vm/nr_hugepages - - - - 95\n");
        assert_eq!(pages(huge, true).as_deref(), Some("95 /usr/lib/tmpfiles.d/x.conf"));
        assert_eq!(pages(gigantic, false), None);
        write(
            "etc/tmpfiles.d/x.conf",
            "# ours\nw /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages - - - - 3\n",
        );
        assert_eq!(pages(gigantic, false).as_deref(), Some("3 /etc/tmpfiles.d/x.conf"));
        assert_eq!(pages(huge, true).as_deref(), Some("90 /etc/sysctl.d/50.conf"), "the file of that name is hidden");
        let node = |node| {
            format!("w /sys/devices/system/node/node{node}/hugepages/hugepages-1048576kB/nr_hugepages - - - - 2\n")
        };
        write("etc/tmpfiles.d/y.conf", &(node(0) + &node(1)));
        assert_eq!(pages(gigantic, false).as_deref(), Some("4 /etc/tmpfiles.d/y.conf"));
        write("etc/systemd/system/own.service", "[Service]\nExecStart=/sbin/own /proc/sys/vm/nr_hugepages\n");
        write("etc/systemd/system/multi-user.target.wants/own.service", "");
        assert_eq!(NextBoot::read(&root).unwrap().other_units, ["/etc/systemd/system/own.service"]);
    }

    #[test]
    fn who_wins() {
        let tree = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let (huge, gigantic) = (PageSize::from_kib(2048).unwrap(), PageSize::from_kib(1 << 20).unwrap());
        let root = Root::at(tree.path());
        let pages = |size, default| {
            NextBoot::read(&root).unwrap().pages(size, default).map(|(pages, file)| format!("{pages} {file}"))
        };
        assert_eq!(pages(huge, true), None);
        write("proc/cmdline", "hugepages=5 hugepagesz=1G hugepages=4\n");
        assert_eq!(pages(huge, true).as_deref(), Some("5 /proc/cmdline"));
        assert_eq!(pages(gigantic, false).as_deref(), Some("4 /proc/cmdline"));
        write("etc/tuned/active_profile", "mine\n");
        write("usr/lib/tuned/base/tuned.conf", "[sysctl]\nvm.nr_hugepages = 3\nvm.swappiness=1\n");
        write("etc/tuned/mine/tuned.conf", "[main]\ninclude=base\n[vm]\nx=1\n[sysctl]\nvm.nr_hugepages=4\n");
        assert_eq!(pages(huge, true).as_deref(), Some("4 /etc/tuned/mine/tuned.conf"));
        assert_eq!(NextBoot::read(&root).unwrap().assignment("vm.swappiness").unwrap().value, "1");
        write("etc/sysctl.d/50.conf", "vm.nr_hugepages = 9\n");
        assert_eq!(pages(huge, true).as_deref(), Some("9 /etc/sysctl.d/50.conf"));
        write("etc/tuned/tuned-main.conf", "reapply_sysctl = 0\n");
        assert_eq!(pages(huge, true).as_deref(), Some("4 /etc/tuned/mine/tuned.conf"));
        assert_eq!(pages(gigantic, false).as_deref(), Some("4 /proc/cmdline"));
    }
}
