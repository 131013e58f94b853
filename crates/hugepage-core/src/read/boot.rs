//! What sets the huge page pools at the next boot: the kernel's command line, sysctl.d, a profile of tuned, and what
//! writes the pools' files later.

use std::collections::BTreeMap;

use crate::read::Root;
use crate::read::boot_loader;
use crate::read::boot_writers::{self, PoolWrite, count};
use crate::read::root::if_there;
use crate::read::sysctl::{self, Assignment};
use crate::{Bytes, Notes, PageSize, Pages, ReadError};

/// The settings of one command line of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// `hugepagesz=` and `hugepages=`; no size means the default one.
    pub pools: Vec<(Option<PageSize>, Pages)>,
    /// `sysctl.vm.nr_hugepages=`, which sysctl.d overrides.
    pub sysctl: Option<Pages>,
    /// The file that it is from.
    pub file: String,
}

impl CommandLine {
    fn of(text: &str, file: &str) -> Self {
        Self { pools: pools_of(text), sysctl: kernel_sysctl_of(text), file: file.to_owned() }
    }

    fn pages(&self, size: PageSize, is_default: bool) -> Option<Pages> {
        let of_size = |wanted: &Option<PageSize>| wanted.map_or(is_default, |wanted| wanted == size);
        let of_pools = || self.pools.iter().rev().find(|(wanted, _)| of_size(wanted)).map(|(_, pages)| *pages);
        self.sysctl.filter(|_| is_default).or_else(of_pools)
    }
}

/// What a pool has after the next boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolAtBoot {
    /// So many pages.
    Set {
        /// The pages.
        pages: Pages,
        /// The file that sets them.
        file: String,
    },
    /// No file sets it.
    Unset,
    /// It can't be known; the reason, a clause.
    Unknown(String),
}

/// All settings of the pools, each with the file that it comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NextBoot {
    /// The command lines of the boot loader's entries, of which one is the next one's; that of the running kernel where
    /// the boot loader's files have none.
    pub command_lines: Vec<CommandLine>,
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
    /// Files of the boot loader that may not be read.
    pub not_read: Vec<String>,
}

impl NextBoot {
    /// Reads all settings.
    pub fn read(root: &Root) -> Result<Self, ReadError> {
        let mut not_read = Notes::default();
        let entries = boot_loader::command_lines(root, &mut not_read);
        let mut command_lines: Vec<_> = entries.iter().map(|(text, file)| CommandLine::of(text, file)).collect();
        if command_lines.is_empty() {
            let running = if_there(root.read(COMMAND_LINE))?.unwrap_or_default();
            command_lines.push(CommandLine::of(&running, COMMAND_LINE));
        }
        Ok(Self {
            command_lines,
            tmpfiles: boot_writers::tmpfiles(root)?,
            units: boot_writers::units(root)?,
            sysctl: sysctl::at_next_boot(root)?,
            tuned: tuned(root)?,
            sysctl_wins: sysctl_wins(root)?,
            not_read: not_read.into_vec(),
        })
    }

    /// What `name`, such as `vm.nr_hugepages`, will be set to, by sysctl.d or tuned.
    pub fn assignment(&self, name: &str) -> Option<&Assignment> {
        let (sysctl, tuned) = (self.sysctl.get(name), self.tuned.get(name));
        if self.sysctl_wins { sysctl.or(tuned) } else { tuned.or(sysctl) }
    }

    /// What the pool of `size` will have.
    pub fn pool(&self, size: PageSize, is_default: bool) -> PoolAtBoot {
        let of_pool = |write: &&PoolWrite| write.pool.may_be(size, is_default);
        // What a unit does is known only if all of them are.
        if let Some(unit) = self.units.iter().filter(of_pool).find(|unit| unit.pages.is_none()) {
            return PoolAtBoot::Unknown(not_understood(&unit.file));
        }
        let set = self.written(size, is_default).unwrap_or_else(|| self.pool_before(size, is_default));
        let raised = self.units.iter().filter(of_pool).max_by_key(|unit| unit.pages);
        match (&set, raised.and_then(|unit| Some((unit.pages?, &unit.file)))) {
            // A unit never reduces a pool.
            (PoolAtBoot::Set { pages, .. }, Some((raised, _))) if raised <= *pages => set,
            (PoolAtBoot::Unknown(_), _) | (_, None) => set,
            (_, Some((pages, file))) => PoolAtBoot::Set { pages, file: file.clone() },
        }
    }

    /// What tmpfiles.d writes; `None` if nothing.
    fn written(&self, size: PageSize, is_default: bool) -> Option<PoolAtBoot> {
        let of_pool = |write: &&PoolWrite| write.pool.may_be(size, is_default);
        let whole = self.tmpfiles.iter().filter(of_pool).rfind(|write| write.node.is_none());
        // The last line for a node counts; together they are the pool.
        let by_node: BTreeMap<_, _> =
            self.tmpfiles.iter().filter(of_pool).filter_map(|write| Some((write.node.as_ref()?, write))).collect();
        let first = by_node.values().next().copied().or(whole)?;
        let all: Vec<_> = if by_node.is_empty() { vec![first] } else { by_node.into_values().collect() };
        Some(match all.iter().find(|write| write.pages.is_none()) {
            Some(write) => PoolAtBoot::Unknown(not_understood(&write.file)),
            None => {
                let pages = all.iter().filter_map(|write| write.pages).fold(Pages(0), Pages::saturating_add);
                PoolAtBoot::Set { pages, file: first.file.clone() }
            }
        })
    }

    /// Before tmpfiles.d and units have their turn.
    fn pool_before(&self, size: PageSize, is_default: bool) -> PoolAtBoot {
        if let Some(Assignment { value, file }) = self.assignment("vm.nr_hugepages").filter(|_| is_default) {
            return match count(value) {
                Some(pages) => PoolAtBoot::Set { pages, file: file.clone() },
                None => PoolAtBoot::Unknown(not_understood(file)),
            };
        }
        let Some((first, others)) = self.command_lines.split_first() else { return PoolAtBoot::Unset };
        let pages = first.pages(size, is_default);
        if let Some(other) = others.iter().find(|other| other.pages(size, is_default) != pages) {
            let files = match first.file == other.file {
                true => first.file.clone(),
                false => format!("{} and {}", first.file, other.file),
            };
            return PoolAtBoot::Unknown(format!(
                "the entries of the boot loader have different pools ({files}), and which one is next is unknown"
            ));
        }
        match pages {
            Some(pages) => PoolAtBoot::Set { pages, file: first.file.clone() },
            None => PoolAtBoot::Unset,
        }
    }
}

/// Why a pool is unknown that `file` sets.
fn not_understood(file: &str) -> String {
    format!("{file} sets it, to a number that could not be read")
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

    /// A host as a tree of files.
    struct Host(tempfile::TempDir);

    impl Host {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn next_boot(&self) -> NextBoot {
            NextBoot::read(&Root::at(self.0.path())).unwrap()
        }

        /// The pool of 2 MB, the default size: `5 /proc/cmdline`, `unset`, or why it is unknown.
        fn huge(&self) -> String {
            shown(self.next_boot().pool(PageSize::from_kib(2048).unwrap(), true))
        }

        fn gigantic(&self) -> String {
            shown(self.next_boot().pool(PageSize::from_kib(1 << 20).unwrap(), false))
        }
    }

    fn shown(pool: PoolAtBoot) -> String {
        match pool {
            PoolAtBoot::Set { pages, file } => format!("{pages} {file}"),
            PoolAtBoot::Unset => "unset".to_owned(),
            PoolAtBoot::Unknown(why) => why,
        }
    }

    /// What tools write for the next boot: our own commands, tmpfiles.d and units.
    #[test]
    fn later_writers() {
        let host = Host::new();
        host.write("proc/cmdline", "quiet hugepages=5\n");
        let unit = include_str!("../advise/fix/hugepages.service.in")
            .replace("@PAGES@", "70")
            .replace("@POOL@", "/sys/kernel/mm/hugepages/hugepages-2048kB");
        host.write("etc/systemd/system/postgresql-hugepages.service", &unit);
        assert_eq!(host.huge(), "5 /proc/cmdline", "it is not enabled");
        host.write("etc/systemd/system/sysinit.target.wants/postgresql-hugepages.service", "");
        assert_eq!(host.huge(), "70 /etc/systemd/system/postgresql-hugepages.service");
        host.write("etc/sysctl.d/50.conf", "vm.nr_hugepages = 90\n");
        assert_eq!(host.huge(), "90 /etc/sysctl.d/50.conf", "a unit never reduces");
        host.write("usr/lib/tmpfiles.d/x.conf", "w /proc/sys/vm/nr_hugepages - - - - 95\n");
        assert_eq!(host.huge(), "95 /usr/lib/tmpfiles.d/x.conf");
        assert_eq!(host.gigantic(), "unset");
        let gigantic = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";
        host.write("etc/tmpfiles.d/x.conf", &format!("# ours\nw {gigantic} - - - - 3\n"));
        assert_eq!(host.gigantic(), "3 /etc/tmpfiles.d/x.conf");
        assert_eq!(host.huge(), "90 /etc/sysctl.d/50.conf", "the file of that name is hidden");
        let node = |node| {
            format!("w /sys/devices/system/node/node{node}/hugepages/hugepages-1048576kB/nr_hugepages - - - - 2\n")
        };
        host.write("etc/tmpfiles.d/y.conf", &(node(0) + &node(1)));
        assert_eq!(host.gigantic(), "4 /etc/tmpfiles.d/y.conf");
    }

    /// Which entry is the next one's is in the firmware, in GRUB's environment, or in the hand of who boots.
    #[test]
    fn entries_of_the_boot_loader() {
        let host = Host::new();
        host.write("proc/cmdline", "quiet hugepages=5\n");
        let of_entries = |lines: &[&str]| {
            host.write("boot/grub/grub.cfg", &format!("menuentry x {{\n\t{}\n}}\n", lines.join("\n\t")));
        };
        of_entries(&["linux /vmlinuz-6.1 ro hugepages=9", "linux /old ro hugepages=9"]);
        assert_eq!(host.huge(), "9 /boot/grub/grub.cfg");
        // What Debian's scripts add beside.
        of_entries(&[
            "linux /vmlinuz-6.1 ro hugepages=9",
            "linux /vmlinuz-6.1 ro single",
            "linux16 /boot/memtest86+.bin",
        ]);
        assert_eq!(host.huge(), "9 /boot/grub/grub.cfg");
        of_entries(&["linux /vmlinuz-6.1 ro hugepages=9", "linux /old ro"]);
        let differ = |files: &str| {
            format!("the entries of the boot loader have different pools ({files}), and which one is next is unknown")
        };
        assert_eq!(host.huge(), differ("/boot/grub/grub.cfg"));
        assert_eq!(host.gigantic(), "unset", "no entry has gigantic pages");
        host.write("etc/sysctl.d/50.conf", "vm.nr_hugepages = 90\n");
        assert_eq!(host.huge(), "90 /etc/sysctl.d/50.conf", "whatever the entry");
        host.write("etc/sysctl.d/50.conf", "");
        host.write("boot/loader/entries/a.conf", "linux /vmlinuz\noptions $kernelopts quiet\n");
        host.write("boot/grub2/grubenv", "# GRUB Environment Block\nkernelopts=ro sysctl.vm.nr_hugepages=11\n");
        assert_eq!(host.huge(), "11 /boot/loader/entries/a.conf");
        host.write("boot/loader/entries/0-rescue.conf", "options ro\n");
        assert_eq!(host.huge(), "11 /boot/loader/entries/a.conf");
        host.write("boot/loader/entries/b.conf", "options ro hugepages=12\n");
        assert_eq!(host.huge(), differ("/boot/loader/entries/a.conf and /boot/loader/entries/b.conf"));
    }

    /// A number that is not understood is neither none nor the one before.
    #[test]
    fn numbers_that_can_not_be_read() {
        let unknown = |file: &str| format!("{file} sets it, to a number that could not be read");
        for (path, text) in [
            ("etc/sysctl.d/50.conf", "vm.nr_hugepages = many\n"),
            // The kernel takes it as octal.
            ("etc/sysctl.d/51.conf", "vm.nr_hugepages = 010\n"),
            ("etc/tmpfiles.d/x.conf", "w /proc/sys/vm/nr_hugepages - - - - %b\n"),
            ("etc/tmpfiles.d/y.conf", "w /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages\n"),
            ("etc/tmpfiles.d/z.conf", "w! /sys/kernel/mm/hugepages/*/nr_hugepages - - - - 7\n"),
        ] {
            let host = Host::new();
            host.write("proc/cmdline", "hugepages=5\n");
            host.write(path, text);
            let expected = unknown(&format!("/{path}"));
            assert_eq!(host.huge(), expected, "{text}");
            // A pattern may mean any pool.
            assert_eq!(host.gigantic(), if text.contains('*') { expected } else { "unset".to_owned() }, "{text}");
        }
        let host = Host::new();
        host.write("proc/cmdline", "hugepages=5\n");
        host.write("etc/tmpfiles.d/x.conf", "w /proc/sys/vm/nr_overcommit_hugepages - - - - %b\n");
        assert_eq!(host.huge(), "5 /proc/cmdline", "that is another parameter");
        host.write("etc/systemd/system/own.service", "[Service]\nExecStart=/sbin/own /proc/sys/vm/nr_hugepages\n");
        host.write("etc/systemd/system/multi-user.target.wants/own.service", "");
        assert_eq!(host.huge(), unknown("/etc/systemd/system/own.service"));
        assert_eq!(host.gigantic(), unknown("/etc/systemd/system/own.service"), "it may set any pool");
    }

    #[test]
    fn who_wins() {
        let host = Host::new();
        assert_eq!(host.huge(), "unset");
        host.write("proc/cmdline", "hugepages=5 hugepagesz=1G hugepages=4\n");
        assert_eq!(host.huge(), "5 /proc/cmdline");
        assert_eq!(host.gigantic(), "4 /proc/cmdline");
        host.write("etc/tuned/active_profile", "mine\n");
        host.write("usr/lib/tuned/base/tuned.conf", "[sysctl]\nvm.nr_hugepages = 3\nvm.swappiness=1\n");
        host.write("etc/tuned/mine/tuned.conf", "[main]\ninclude=base\n[vm]\nx=1\n[sysctl]\nvm.nr_hugepages=4\n");
        assert_eq!(host.huge(), "4 /etc/tuned/mine/tuned.conf");
        assert_eq!(host.next_boot().assignment("vm.swappiness").unwrap().value, "1");
        host.write("etc/sysctl.d/50.conf", "vm.nr_hugepages = 9\n");
        assert_eq!(host.huge(), "9 /etc/sysctl.d/50.conf");
        host.write("etc/tuned/tuned-main.conf", "reapply_sysctl = 0\n");
        assert_eq!(host.huge(), "4 /etc/tuned/mine/tuned.conf");
        assert_eq!(host.gigantic(), "4 /proc/cmdline");
    }
}
