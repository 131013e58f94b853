//! What sets the huge page pools at the next boot, if that is plain: nothing, sysctl.d, or one count on the kernel's command
//! line. If something else may set them, they are unknown, with the file.
//!
//! This opens only regular files that belong to root, in directories that belong to root, and nothing that a file names.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

use crate::memory::meminfo::Meminfo;
use crate::memory::sysctl;
use crate::proc::{namespace, process};
use crate::source::root_files::{RootEntry, RootFiles};
use crate::{PageSize, Pages, Root};

const COMMAND_LINE: &str = "/proc/cmdline";
/// The directories of systemd-sysctl, the most important first: a file hides files of the same name in later ones (sysctl.d(5)).
const SYSCTL: &str = "/etc/sysctl.d /run/sysctl.d /usr/local/lib/sysctl.d /usr/lib/sysctl.d /lib/sysctl.d";
const SYSCTL_CONF: &str = "/etc/sysctl.conf";
/// Directories of files that may set a pool at boot, and such files.
const WRITERS: &str = "/etc/tmpfiles.d /run/tmpfiles.d /usr/local/lib/tmpfiles.d /usr/lib/tmpfiles.d /etc/init.d /etc/cron.d \
                       /etc/udev/rules.d /etc/systemd/system /run/systemd/system /usr/local/lib/systemd/system";
const WRITER_FILES: &str =
    "/etc/rc.local /etc/rc.d/rc.local /etc/crontab /var/spool/cron/root /var/spool/cron/crontabs/root";
const VENDOR_UNITS: &str = "/usr/lib/systemd/system";
const TUNED: [&str; 4] = ["/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned"];
const TUNED_ACTIVE: &str = "/etc/tuned/active_profile";
/// The configuration of boot loaders, files and directories.
const BOOT_LOADERS: &str = "/boot/grub/grub.cfg /boot/grub/grubenv /boot/grub2/grub.cfg /boot/grub2/grubenv /boot/loader \
                            /boot/loader/entries /boot/efi/loader /boot/efi/loader/entries /efi/loader /efi/loader/entries \
                            /etc/default/grub /etc/default/grub.d /etc/kernel /boot/extlinux /boot/syslinux /boot/cmdline.txt \
                            /boot/firmware/cmdline.txt /boot/refind_linux.conf /etc/lilo.conf /etc/zipl.conf";
/// What texts that set a pool have in common, in lower case, and what has one of these and sets none.
const WORDS: [&str; 6] = ["nr_h", "hugepages", "hugeadm", "hugetlb", "allocpages", "hugepage-sidecar apply"];
const OTHERS: [&str; 5] =
    ["transparent_hugepage", "/dev/hugepages", "dev-hugepages.mount", "dpdk-hugepages.mount", "hugetlbfs"];

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
    /// Nothing sets it.
    Unset,
    /// The number can't be known; the reason, a clause.
    Unknown(String),
}

/// What the next boot gives each pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextBoot(Result<BTreeMap<PageSize, (Pages, String)>, String>);

impl NextBoot {
    /// Reads what sets the pools.
    pub fn read(root: &Root) -> Self {
        if namespace::shows_files_of_container(root) {
            return Self(Err("the files of a container say nothing of the host's next boot".to_owned()));
        }
        Self(Reading { root, files: RootFiles::new(root) }.settings())
    }

    /// The pool of `size`.
    pub fn pool(&self, size: PageSize) -> PoolAtBoot {
        match &self.0 {
            Err(why) => PoolAtBoot::Unknown(why.clone()),
            Ok(pools) => match pools.get(&size).cloned() {
                Some((pages, file)) => PoolAtBoot::Set { pages, file },
                None => PoolAtBoot::Unset,
            },
        }
    }
}

struct Reading<'a> {
    root: &'a Root,
    files: RootFiles<'a>,
}

impl Reading<'_> {
    fn settings(mut self) -> Result<BTreeMap<PageSize, (Pages, String)>, String> {
        if !self.root.exists("/run/systemd/system") {
            return Err("systemd does not run, whose settings are known here".to_owned());
        }
        let default = Meminfo::read(self.root).ok().and_then(|meminfo| meminfo.huge_page_size);
        let default = default.ok_or("the default huge page size is unknown")?;
        let command_line = self.root.read(COMMAND_LINE).map_err(|_| "the kernel's command line is not there")?;
        let mut pools = BTreeMap::new();
        if let Some((size, pages)) = on_command_line(&command_line)? {
            pools.insert(size.unwrap_or(default), (pages, COMMAND_LINE.to_owned()));
        }
        self.check_boot_loaders()?;
        if let Some((pages, file)) = self.sysctl()?
            && pools.insert(default, (pages, file.clone())).is_some_and(|(other, _)| other != pages)
        {
            return Err(format!("{COMMAND_LINE} and {file} set different numbers"));
        }
        self.check_writers()?;
        self.check_tuned()?;
        Ok(pools)
    }

    /// The last `vm.nr_hugepages`; an error if `vm.nr_overcommit_hugepages` lets a start have surplus pages.
    fn sysctl(&mut self) -> Result<Option<(Pages, String)>, String> {
        let mut files = BTreeMap::new();
        for directory in SYSCTL.split(' ') {
            for name in self.files.names(directory)?.into_iter().filter(|name| name.ends_with(".conf")) {
                files.entry(name.clone()).or_insert(format!("{directory}/{name}"));
            }
        }
        let (mut count, mut surplus, mut reads_sysctl_conf) = (None, None, false);
        for path in files.into_values() {
            let (path, found) = match self.files.read(&path)? {
                Some(RootEntry::Link(target)) if target == "/dev/null" => continue,
                Some(RootEntry::Link(target)) if target == "../sysctl.conf" || target == SYSCTL_CONF => {
                    reads_sysctl_conf = true;
                    (SYSCTL_CONF.to_owned(), self.files.read(SYSCTL_CONF)?)
                }
                Some(RootEntry::Link(_)) => return Err(format!("{path} is a symbolic link, which is not followed")),
                found => (path, found),
            };
            let Some(RootEntry::Text(text)) = found else { continue };
            for (name, value) in text.lines().filter_map(sysctl::parse) {
                match (name.as_str(), plain(&value)) {
                    ("vm.nr_hugepages", Some(pages)) => count = Some((Pages(pages), path.clone())),
                    ("vm.nr_overcommit_hugepages", Some(pages)) => surplus = (pages > 0).then(|| path.clone()),
                    _ if mentions(&name) || may_be_of_vm(&name) => {
                        return Err(format!("{path} sets {name} = {value}"));
                    }
                    _ => {}
                }
            }
        }
        if !reads_sysctl_conf
            && let Some(RootEntry::Text(text)) = self.files.read(SYSCTL_CONF)?
            && text_mentions(&text)
        {
            return Err(format!("{SYSCTL_CONF} mentions huge pages, and systemd does not read it"));
        }
        surplus.map_or(Ok(count), |file: String| Err(format!("{file} sets vm.nr_overcommit_hugepages")))
    }

    /// An error if the next kernel's command line may be another one than the running kernel's.
    fn check_boot_loaders(&self) -> Result<(), String> {
        let is_loaded = self.root.read("/sys/kernel/kexec_loaded").is_ok_and(|text| text.trim() == "1");
        if is_loaded || self.root.exists("/run/ostree/staged-deployment") {
            return Err("another kernel or deployment is loaded for the next start".to_owned());
        }
        let boot = process::boot_time(self.root).map_err(|_| "the time of the boot is unknown")?;
        for place in BOOT_LOADERS.split(' ') {
            for path in self.files.with_content(place)? {
                if self.files.changed(&path)?.is_some_and(|changed| changed > boot) {
                    return Err(format!("{path} is newer than the boot"));
                }
            }
        }
        Ok(())
    }

    /// An error if a file that is read at boot mentions huge pages.
    fn check_writers(&mut self) -> Result<(), String> {
        let files = WRITER_FILES.split(' ').filter(|path| self.root.exists(path));
        let (mut links, mut paths) = (Vec::new(), files.map(str::to_owned).collect::<Vec<_>>());
        for directory in WRITERS.split(' ') {
            paths.extend(self.files.names(directory)?.iter().map(|name| format!("{directory}/{name}")));
        }
        while let Some(path) = paths.pop() {
            match self.check(&path)? {
                _ if path.contains("/system/systemd-sysctl.service") => {
                    return Err(format!("{path} decides whether sysctl.d is read"));
                }
                Some(RootEntry::Link(target)) => links.push((path, target)),
                Some(RootEntry::Directory) if path.contains("/systemd/system/") => {
                    paths.extend(self.files.names(&path)?.iter().map(|name| format!("{path}/{name}")));
                }
                _ => {}
            }
        }
        self.check_units(&links)
    }

    /// An error if a unit that one of these links starts mentions huge pages. Each is opened by its own name, in its own place.
    fn check_units(&mut self, links: &[(String, String)]) -> Result<(), String> {
        let is_link = |name: &String| links.iter().any(|(path, _)| path.rsplit('/').next() == Some(name));
        let mut own = self.files.names("/etc/systemd/system")?;
        own.retain(|name| !is_link(name));
        own.extend(self.files.names("/usr/local/lib/systemd/system")?);
        let vendor = self.files.names(VENDOR_UNITS)?;
        let mut wanted = BTreeSet::new();
        for (path, target) in links {
            let names = unit_names(target);
            match names.iter().find(|name| vendor.contains(name)) {
                Some(name) => drop(wanted.insert(name.clone())),
                None if !target.ends_with(".service") || names.iter().any(|name| own.contains(name)) => {}
                None => return Err(format!("{path} leads to a place that is not read")),
            }
        }
        // What the packages themselves add to units and start; systemd's own sets no pool.
        for directory in vendor.iter().filter(|name| name.ends_with(".wants") || name.ends_with(".d")) {
            let names = self.files.names(&format!("{VENDOR_UNITS}/{directory}"))?.into_iter();
            let names = names.filter(|name| !name.starts_with("systemd-"));
            wanted.extend(names.flat_map(|name| [format!("{directory}/{name}"), unit_names(&name)[1].clone()]));
        }
        wanted.iter().try_for_each(|name| self.check(&format!("{VENDOR_UNITS}/{name}")).map(drop))
    }

    /// An error if the active profile of tuned, or one that it includes, mentions huge pages.
    fn check_tuned(&mut self) -> Result<(), String> {
        let Some(RootEntry::Text(active)) = self.files.read(TUNED_ACTIVE)? else { return Ok(()) };
        let mut profiles: Vec<_> = active.split_whitespace().map(str::to_owned).collect();
        let mut seen = BTreeSet::new();
        while let Some(profile) = profiles.pop().filter(|profile| seen.insert(profile.clone())) {
            let mut place = None;
            for directory in TUNED {
                let is_there = self.files.names(directory)?.contains(&profile);
                place = place.or(is_there.then(|| format!("{directory}/{profile}")));
            }
            let place = place.ok_or(format!("the profile {profile} of tuned is not found"))?;
            for name in self.files.names(&place)? {
                self.check(&format!("{place}/{name}"))?;
            }
            let path = format!("{place}/tuned.conf");
            let Some(RootEntry::Text(text)) = self.check(&path)? else {
                return Err(format!("{path} is not a regular file"));
            };
            let values = text.lines().filter_map(|line| line.trim().strip_prefix("include")?.trim().strip_prefix('='));
            let names = values.flat_map(|names| names.split([',', ' '])).filter(|name| !name.is_empty());
            profiles.extend(names.map(str::to_owned));
        }
        Ok(())
    }

    /// What is at `path`; an error if it mentions huge pages.
    fn check(&mut self, path: &str) -> Result<Option<RootEntry>, String> {
        let found = self.files.read(path)?;
        let is_mention = match &found {
            Some(RootEntry::Text(text)) => text_mentions(text),
            Some(RootEntry::Link(target)) => {
                target != "/dev/null" && mentions(path.rsplit('/').next().unwrap_or_default())
            }
            _ => false,
        };
        if is_mention { Err(format!("{path} mentions huge pages")) } else { Ok(found) }
    }
}

/// The count of a command line that has exactly one, alone or right behind its size; an error for anything else with huge pages.
fn on_command_line(line: &str) -> Result<Option<(Option<PageSize>, Pages)>, String> {
    let words = line.split_ascii_whitespace().take_while(|word| *word != "--");
    let words: Vec<_> = words.filter(|word| word.contains("hugepages") || word.contains("cma")).collect();
    let pages = |word: &str| plain(word.strip_prefix("hugepages=")?).map(Pages);
    let size = |word: &str| word.strip_prefix("hugepagesz=").and_then(PageSize::of_kernel_text);
    let is_behind = || line.contains(&words.join(" "));
    match words[..] {
        // What quotes hold together is not taken apart here.
        _ if line.contains('"') && line.contains("hugepages") => Err(format!("{COMMAND_LINE} has quotes")),
        [] => Ok(None),
        [count] if pages(count).is_some() => Ok(pages(count).map(|pages| (None, pages))),
        [of, count] if size(of).is_some() && pages(count).is_some() && is_behind() => {
            Ok(pages(count).map(|pages| (size(of), pages)))
        }
        _ => Err(format!("{COMMAND_LINE} has {}, of which only one plain count is understood", words.join(" "))),
    }
}

/// A number as people write it: the kernel reads some others otherwise, or not at all.
fn plain(text: &str) -> Option<u64> {
    let is_plain = text == "0" || text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| is_plain)
}

/// The names of the service that a unit is or starts, as a timer does: `foo@.service` for `foo@bar.service`, and its own.
fn unit_names(path: &str) -> [String; 2] {
    let file = path.rsplit('/').next().unwrap_or(path);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    let template = stem.split_once('@').map(|(unit, _)| format!("{unit}@.service"));
    [template.unwrap_or_default(), format!("{stem}.service")]
}

/// Whether a name with a pattern may match one of `vm`.
fn may_be_of_vm(name: &str) -> bool {
    let known = name.split_once(['*', '?', '[']).map(|(known, _)| known);
    known.is_some_and(|known| known.chars().zip("vm.".chars()).all(|(one, other)| one == other))
}

fn text_mentions(text: &str) -> bool {
    let is_comment = |line: &str| line.starts_with(['#', ';']);
    text.lines().map(str::trim).any(|line| !is_comment(line) && mentions(line))
}

/// Whether a line may set a pool.
pub fn mentions(line: &str) -> bool {
    let rest = OTHERS.iter().fold(line.to_ascii_lowercase(), |text, other| text.replace(other, ""));
    WORDS.iter().any(|word| rest.contains(word))
}

#[cfg(test)]
mod tests;
