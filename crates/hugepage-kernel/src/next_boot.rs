//! What sets the huge page pools at the next boot, if that is plain: nothing, sysctl.d, or one count on the kernel's command
//! line. If something else may set them, they are unknown, with the file.
//!
//! This opens only regular files that belong to root, in directories that belong to root, and nothing that a file names.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::memory::{meminfo::Meminfo, sysctl};
use crate::proc::{namespace, process};
use crate::source::root_files::{RootEntry, RootFiles};
use crate::{PageSize, Pages, Root};

const COMMAND_LINE: &str = "/proc/cmdline";
/// The directories of systemd-sysctl, the most important last: a file hides files of the same name in those before (sysctl.d(5)).
const SYSCTL: &str = "/lib/sysctl.d /usr/lib/sysctl.d /usr/local/lib/sysctl.d /run/sysctl.d /etc/sysctl.d";
const SYSCTL_CONF: &str = "/etc/sysctl.conf";
/// Directories of files that may set a pool at boot, and such files, which not everybody sees.
const WRITERS: &str = "/etc/tmpfiles.d /run/tmpfiles.d /usr/local/lib/tmpfiles.d /usr/lib/tmpfiles.d /etc/init.d /etc/cron.d \
                       /etc/cron.hourly /etc/cron.daily /etc/cron.weekly /etc/cron.monthly /etc/udev/rules.d /run/udev/rules.d \
                       /usr/local/lib/udev/rules.d /etc/network /etc/NetworkManager/dispatcher.d /usr/lib/NetworkManager/dispatcher.d \
                       /etc/networkd-dispatcher /etc/cloud/cloud.cfg.d /var/lib/cloud/scripts/per-boot /etc/saptune /etc/sysfs.d \
                       /etc/systemd/system-generators /usr/local/lib/systemd/system-generators /etc/systemd/system.attached \
                       /etc/systemd/system /run/systemd/system /usr/local/lib/systemd/system";
const WRITER_FILES: &str = "/etc/rc.local /etc/rc.d/rc.local /etc/crontab /etc/anacrontab /etc/cloud/cloud.cfg /etc/sysfs.conf \
     /etc/dpdk/dpdk.conf /sbin/ifup-local /var/spool/cron/root /var/spool/cron/tabs/root /var/spool/cron/crontabs/root \
     /etc/credstore/sysctl.extra /run/credstore/sysctl.extra /usr/lib/credstore/sysctl.extra /etc/credstore/tmpfiles.extra";
/// The files that are opened in all.
const MAX_FILES: usize = 200;
const USER_DATA: &str = "/var/lib/cloud/instance/user-data.txt /var/lib/cloud/instance/vendor-data.txt \
                         /var/lib/cloud/instance/vendor-data2.txt";
const VENDOR_UNITS: &str = "/usr/lib/systemd/system";
const TUNED: &str = "/etc/tuned/profiles /etc/tuned /usr/lib/tuned/profiles /usr/lib/tuned";
/// The configuration of boot loaders, files and directories.
const BOOT_LOADERS: &str = "/boot/grub/grub.cfg /boot/grub/grubenv /boot/grub/custom.cfg /boot/grub/menu.lst /boot/grub2/grub.cfg \
                            /boot/grub2/grubenv /boot/grub2/custom.cfg /boot/efi/EFI /boot/efi/EFI/Linux /efi/EFI /efi/EFI/Linux \
                            /boot/EFI /boot/EFI/Linux /boot/loader /boot/loader/entries /boot/efi/loader /boot/efi/loader/entries \
                            /efi/loader /efi/loader/entries /etc/default/grub /etc/default/grub.d /etc/grub.d /etc/kernel \
                            /boot/extlinux /boot/syslinux /boot/cmdline.txt /boot/firmware/cmdline.txt /boot/armbianEnv.txt \
                            /boot/refind_linux.conf /etc/lilo.conf /etc/zipl.conf";
/// What texts that set a pool have in common, in lower case, and what has one of these and sets none.
const WORDS: [&str; 8] =
    ["nr_h", "hugepages", "hugeadm", "hugetlb", "allocpages", "hugepage-sidecar apply", "nr_2m_pages", "nr_1g_pages"];
const OTHERS: [&str; 4] = ["transparent_hugepage", "/dev/hugepages", "-hugepages.mount", "hugetlbfs"];
/// How sysctl(8) and systemd-sysctl(8) get the name of a file.
const LOADS: [&str; 6] = ["-p /", "-p/", "-p $", "-p \"", "--load=", "sysctl /"];

/// What a pool has after the next boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolAtBoot {
    /// So many pages, and the file that sets them.
    Set(Pages, String),
    /// Nothing sets it.
    Unset,
    /// The number can't be known; the reason, a clause.
    Unknown(String),
}

type Pools = BTreeMap<PageSize, (Pages, String)>;

/// What the next boot gives each pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextBoot(Result<Pools, String>);

impl NextBoot {
    /// Reads what sets the pools.
    pub fn read(root: &Root) -> Self {
        Self(RootFiles::new(root, MAX_FILES).pools())
    }

    /// The pool of `size`.
    pub fn pool(&self, size: PageSize) -> PoolAtBoot {
        match self.0.as_ref().map(|pools| pools.get(&size)) {
            Err(why) => PoolAtBoot::Unknown(why.clone()),
            Ok(Some((pages, file))) => PoolAtBoot::Set(*pages, file.clone()),
            Ok(None) => PoolAtBoot::Unset,
        }
    }
}

impl RootFiles<'_> {
    fn pools(mut self) -> Result<Pools, String> {
        if namespace::shows_files_of_container(self.root) {
            return Err("the files of a container say nothing of the host's next boot".to_owned());
        }
        if !self.root.exists("/run/systemd/system") {
            return Err("systemd does not run, whose settings are known here".to_owned());
        }
        let default = Meminfo::read(self.root).ok().and_then(|meminfo| meminfo.huge_page_size);
        let default = default.ok_or("the default huge page size is unknown")?;
        let command_line = self.root.read(COMMAND_LINE).map_err(|_| "the kernel's command line is not there")?;
        let mut pools = on_command_line(&command_line, default)?;
        self.check_boot_loaders()?;
        let sysctl = self.sysctl(&SYSCTL.replace("/run/sysctl.d ", ""))?;
        if !self.names("/run/sysctl.d")?.is_empty() && self.sysctl(SYSCTL)? != sysctl {
            return Err("/run/sysctl.d, which a boot empties, changes what sysctl.d sets".to_owned());
        }
        if let Some((pages, file)) = sysctl
            && pools.insert(default, (pages, file.clone())).is_some_and(|(other, _)| other != pages)
        {
            return Err(format!("{COMMAND_LINE} and {file} set different numbers"));
        }
        self.check_writers()?;
        self.check_tuned()?;
        Ok(pools)
    }

    /// An error if the next kernel's command line may be another one than the running kernel's.
    fn check_boot_loaders(&self) -> Result<(), String> {
        let is_loaded = self.root.read("/sys/kernel/kexec_loaded").is_ok_and(|text| text.trim() == "1");
        if is_loaded || self.root.exists("/run/ostree/staged-deployment") {
            return Err("another kernel or deployment is loaded for the next start".to_owned());
        }
        let boot = process::boot_time(self.root).map_err(|_| "the time of the boot is unknown")?;
        BOOT_LOADERS.split(' ').try_for_each(|place| self.check_age(place, boot))
    }

    /// The last `vm.nr_hugepages`; an error if `vm.nr_overcommit_hugepages` may let a start have surplus pages.
    fn sysctl(&mut self, directories: &str) -> Result<Option<(Pages, String)>, String> {
        let (mut count, mut is_read, mut files) = (None, false, BTreeMap::new());
        for directory in directories.split(' ') {
            files.extend(self.inside(directory)?.into_iter().map(|path| (file_name(&path).to_owned(), path)));
        }
        for mut path in files.into_values().filter(|path| path.ends_with(".conf")) {
            let mut found = self.read(&path)?;
            if matches!(&found, Some(RootEntry::Link(target)) if ["../sysctl.conf", SYSCTL_CONF].contains(&&**target)) {
                (is_read, found, path) = (true, self.read(SYSCTL_CONF)?, SYSCTL_CONF.to_owned());
            }
            let text = match found {
                Some(RootEntry::Text(text)) => text,
                Some(RootEntry::Link(target)) if target != "/dev/null" => {
                    return Err(format!("{path} is a symbolic link, which is not followed"));
                }
                _ => continue,
            };
            for (name, value) in text.lines().filter_map(sysctl::parse) {
                let pattern = name.split_once(['*', '?', '[']).map(|(known, _)| known);
                let may_be_vm = pattern.is_some_and(|known| known.starts_with("vm.") || "vm.".starts_with(known));
                match (name.as_str(), plain(&value)) {
                    ("vm.nr_hugepages", Some(pages)) => count = Some((Pages(pages), path.clone())),
                    ("vm.nr_overcommit_hugepages", Some(0)) => {}
                    _ if mention(&name).is_some() || may_be_vm => return Err(format!("{path} sets {name} = {value}")),
                    _ => {}
                }
            }
        }
        if !is_read {
            self.check(SYSCTL_CONF).map_err(|why| format!("{why}, and systemd does not read it"))?;
        }
        Ok(count)
    }

    /// An error if a file that is read at boot mentions huge pages, or a package's unit that a link starts, in its own place.
    fn check_writers(&mut self) -> Result<(), String> {
        let files = WRITER_FILES.split(' ').filter(|path| self.root.exists(path));
        let (mut links, mut paths) = (Vec::new(), files.map(str::to_owned).collect::<Vec<_>>());
        paths.extend(USER_DATA.split(' ').filter(|path| self.read(path).is_ok()).map(str::to_owned));
        for directory in WRITERS.split(' ') {
            paths.extend(self.inside(directory)?);
        }
        let mut units = BTreeSet::from_iter(self.names(VENDOR_UNITS)?);
        // What the packages themselves add to units and start; systemd's own sets no pool.
        for directory in units.iter().filter(|name| name.ends_with(".wants") || name.ends_with(".d")) {
            let added = self.inside(&format!("{VENDOR_UNITS}/{directory}"))?.into_iter();
            paths.extend(added.filter(|path| !file_name(path).starts_with("systemd-")));
        }
        while let Some(path) = paths.pop() {
            match self.check(&path)? {
                _ if path.contains("/system/systemd-sysctl.service") => {
                    return Err(format!("{path} decides whether sysctl.d is read"));
                }
                Some(RootEntry::Link(target)) => links.push((path, target)),
                Some(RootEntry::Directory) => paths.extend(self.inside(&path)?),
                Some(RootEntry::Text(_)) => drop(units.insert(file_name(&path).to_owned())),
                _ => {}
            }
        }
        let mut wanted = BTreeSet::new();
        for (path, target) in &links {
            // A timer starts the service of its name; `foo@bar.service` may be one of `foo@.service`.
            let stem = file_name(target).rsplit_once('.').map_or("", |(stem, _)| stem);
            let template = stem.split_once('@').map(|(unit, _)| format!("{unit}@.service"));
            let names = template.into_iter().chain([format!("{stem}.service")]);
            let names: Vec<_> = names.filter(|name| units.contains(name)).collect();
            if names.is_empty() && target.ends_with(".service") && !path.starts_with(VENDOR_UNITS) {
                return Err(format!("{path} leads to a place that is not read"));
            }
            wanted.extend(names);
        }
        wanted.iter().try_for_each(|name| self.check(&format!("{VENDOR_UNITS}/{name}")).map(drop))
    }

    /// An error if an active profile of tuned, or one that it includes, mentions huge pages.
    fn check_tuned(&mut self) -> Result<(), String> {
        let mut profiles = Vec::new();
        for file in ["/etc/tuned/active_profile", "/etc/tuned/post_loaded_profile"] {
            if let Some(RootEntry::Text(active)) = self.read(file)? {
                profiles.extend(active.split_whitespace().map(str::to_owned));
            }
        }
        let places = TUNED.split(' ').map(|directory| self.inside(directory)).collect::<Result<Vec<_>, _>>()?.concat();
        while let Some(profile) = profiles.pop() {
            let place = places.iter().find(|place| file_name(place) == profile);
            for path in self.inside(place.ok_or(format!("the profile {profile} of tuned is not found"))?)? {
                let Some(RootEntry::Text(text)) = self.check(&path)? else {
                    return Err(format!("{path} is not a regular file"));
                };
                let included = text.lines().filter_map(|line| line.trim().strip_prefix("include"));
                let names = included.flat_map(|names| names.split(['=', ',', ' '])).filter(|name| !name.is_empty());
                profiles.extend(names.map(str::to_owned));
            }
        }
        Ok(())
    }

    /// The paths in a directory of root's.
    fn inside(&self, directory: &str) -> Result<Vec<String>, String> {
        Ok(self.names(directory)?.iter().map(|name| format!("{directory}/{name}")).collect())
    }

    /// What is at `path`; an error if it mentions huge pages, or has sysctl load another file.
    fn check(&mut self, path: &str) -> Result<Option<RootEntry>, String> {
        let found = self.read(path)?;
        let text = match &found {
            Some(RootEntry::Text(text)) => text,
            Some(RootEntry::Link(target)) if target != "/dev/null" => file_name(path),
            _ => "",
        };
        mention(text).map_or(Ok(()), |what| Err(format!("{path} {what}")))?;
        Ok(found)
    }
}

/// The count of a command line that has exactly one, alone or right behind its size; an error for anything else with huge pages.
fn on_command_line(line: &str, default: PageSize) -> Result<Pools, String> {
    let parts = ["hugepages", "cma", "sysctl", "emergency"];
    let decides = |word: &&str| word.starts_with("init=") || parts.iter().any(|part| word.contains(part));
    let words: Vec<_> = line.split_ascii_whitespace().take_while(|word| *word != "--").filter(decides).collect();
    let text = words.join(" ");
    let size = |word: &str| word.strip_prefix("hugepagesz=").and_then(PageSize::of_kernel_text);
    let pages = |word: &str| Some((Pages(plain(word.strip_prefix("hugepages=")?)?), COMMAND_LINE.to_owned()));
    let pools = match words[..] {
        // What quotes hold together is not taken apart here.
        _ if line.contains('"') && line.contains("hugepages") => None,
        [] => Some(Pools::new()),
        [count] => pages(count).map(|pages| Pools::from([(default, pages)])),
        [of, count] if line.contains(&text) => size(of).zip(pages(count)).map(|pool| Pools::from([pool])),
        _ => None,
    };
    pools.ok_or(format!("{COMMAND_LINE} has {text}, of which only one plain count is understood"))
}

/// A number as people write it: the kernel reads some others otherwise, or not at all.
fn plain(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number: &u64| number.to_string() == text)
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// What a line of a text, which is no comment, may do to a pool; `None` if nothing.
fn mention(text: &str) -> Option<&'static str> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    let without = |line: &str| OTHERS.iter().fold(line.to_ascii_lowercase(), |rest, other| rest.replace(other, ""));
    lines.map(without).find_map(|line| match line.find("sysctl ") {
        _ if WORDS.iter().any(|word| line.contains(word)) => Some("mentions huge pages"),
        Some(at) if LOADS.iter().any(|form| line[at..].contains(form)) => Some("has sysctl load another file"),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
