//! The two sources: sysctl.d as systemd-sysctl reads it, and the kernel's command line; and what root says.

use std::collections::BTreeMap;

use crate::host::kernel_release::KernelRelease;
use crate::memory::sysctl;
use crate::{PageSize, Pages, RootEntry, RootFiles};

/// The pages of each pool that something sets, and the file.
pub(super) type Pools = BTreeMap<PageSize, (Pages, String)>;

/// Root's one line: the pages of the default size, and who sets them at boot.
pub const TOLD: &str = "/etc/hugepage-sidecar/next-boot";

pub(super) const COMMAND_LINE: &str = "/proc/cmdline";
/// The directories of systemd-sysctl, the most important last: a file hides files of the same name in those before (sysctl.d(5)).
const SYSCTL: &str =
    "/lib/sysctl.d /usr/lib/sysctl.d /usr/local/lib/sysctl.d /run/sysctl.d /etc/sysctl.d";
pub(super) const SYSCTL_CONF: &str = "/etc/sysctl.conf";
/// What changes or masks the unit that applies sysctl.d.
pub(super) const SYSCTL_UNIT: [&str; 2] = [
    "/etc/systemd/system/systemd-sysctl.service",
    "/etc/systemd/system/systemd-sysctl.service.d",
];
/// The file of `apply --persist` for pools of other sizes.
pub(super) const TMPFILES: &str = "/etc/tmpfiles.d/postgresql-hugepages.conf";
/// The parameters that set the pool of the default size, or let a start have more pages.
const PARAMETERS: [&str; 3] = [
    "vm/nr_hugepages",
    "vm/nr_hugepages_mempolicy",
    "vm/nr_overcommit_hugepages",
];
/// The parameter that lets a group have System V segments in huge pages.
pub(super) const SHM_GROUP: &str = "vm/hugetlb_shm_group";
/// What is in words of a command line that set a pool, or what sysctl.d does: a mask, or a credential of systemd-sysctl's.
const SETTERS: [&str; 3] = ["hugepages", "systemd-sysctl", "sysctl.extra"];

impl RootFiles<'_> {
    /// What the sources set; `said`: in words. `shm_group` gets [`SHM_GROUP`].
    pub(super) fn pools(
        &mut self,
        default: PageSize,
        has_systemd: bool,
        said: &mut Vec<String>,
        shm_group: &mut Option<u64>,
    ) -> Result<Pools, String> {
        let line = self
            .root
            .read(COMMAND_LINE)
            .map_err(|_| "the kernel's command line is not there")?;
        let count = on_command_line(&line)?;
        let mut pools =
            Pools::from_iter(count.map(|pages| (default, (pages, COMMAND_LINE.to_owned()))));
        if has_systemd {
            if let Some(unit) = SYSCTL_UNIT
                .iter()
                .find(|unit| self.root.find(unit, false).is_ok())
            {
                return Err(format!("{unit} changes what a boot does with sysctl.d"));
            }
            let sysctl = self.sysctl(&SYSCTL.replace("/run/sysctl.d ", ""), shm_group)?;
            if !self.names("/run/sysctl.d")?.is_empty() && self.sysctl(SYSCTL, &mut None)? != sysctl
            {
                return Err(
                    "/run/sysctl.d, which a boot empties, changes what sysctl.d sets".to_owned(),
                );
            }
            pools.extend(sysctl.map(|set| (default, set)));
            pools.extend(self.of_apply()?);
        } else if let Some((_, file)) = self.sysctl(SYSCTL, &mut None)? {
            return Err(format!(
                "whether a boot without systemd reads {file} is not known"
            ));
        }
        said.extend(
            pools
                .iter()
                .map(|(size, (pages, file))| format!("{file} sets {pages} of {size}")),
        );
        Ok(pools)
    }

    /// The last `vm.nr_hugepages`, and in `shm_group` the last [`SHM_GROUP`]; an error if something else may set this pool, or let a
    /// start have surplus pages.
    fn sysctl(
        &mut self,
        directories: &str,
        shm_group: &mut Option<u64>,
    ) -> Result<Option<(Pages, String)>, String> {
        let mut lines = BTreeMap::new();
        let mut count = None;
        for mut path in self.sysctl_files(directories)? {
            let mut found = self.read(&path)?;
            if let Some(RootEntry::Link(target)) = &found
                && (target == SYSCTL_CONF
                    || target == "../sysctl.conf" && path.starts_with("/etc/"))
            {
                SYSCTL_CONF.clone_into(&mut path);
                found = self.read(&path)?;
            }
            let text = match found {
                Some(RootEntry::Text(text)) => text,
                Some(RootEntry::Link(target)) if target != "/dev/null" => {
                    return Err(format!("{path} is a symbolic link, which is not followed"));
                }
                // Systemd's releases differ in whether it hides a file.
                Some(RootEntry::Directory) => return Err(format!("{path} is a directory")),
                _ => continue,
            };
            for (name, value) in text.split(['\n', '\r', '\0']).filter_map(sysctl::parse) {
                lines.insert(name, (value, path.clone()));
            }
        }
        for parameter in PARAMETERS {
            // A pattern sets what no line names.
            let is_of = |name: &str| {
                if lines.contains_key(parameter) {
                    name == parameter
                } else {
                    sysctl::may_be(name, parameter)
                }
            };
            let set = lines
                .iter()
                .filter_map(|(name, (value, file))| Some((name, value.as_ref()?, file)));
            for (name, value, file) in set.filter(|(name, ..)| is_of(name)) {
                match (parameter, sysctl::number(value)) {
                    // The kernel refuses it.
                    (_, None) => {}
                    ("vm/nr_overcommit_hugepages", Some(0)) => {}
                    ("vm/nr_hugepages", Some(pages)) if name == parameter => {
                        count = Some((Pages(pages), file.clone()));
                    }
                    _ => {
                        let name = name.replace('/', ".");
                        return Err(format!("{file} sets {name} = {value}"));
                    }
                }
            }
        }
        *shm_group = lines
            .get(SHM_GROUP)
            .and_then(|(value, _)| sysctl::number(value.as_ref()?));
        Ok(count)
    }

    /// The files of sysctl.d in their order.
    fn sysctl_files(&self, directories: &str) -> Result<Vec<String>, String> {
        let mut files = BTreeMap::new();
        for directory in directories.split(' ') {
            let names = self.names(directory)?.into_iter();
            files.extend(
                names
                    .filter(|name| name.ends_with(".conf") && !name.starts_with('.'))
                    .map(|name| (name.clone(), format!("{directory}/{name}"))),
            );
        }
        // That of Enterprise Linux 7 reads it by itself; and without systemd others do.
        let kernel = KernelRelease::running(self.root);
        let is_read = kernel.is_some_and(|kernel| kernel.is_before(4, 0, 0))
            || !self.root.exists("/run/systemd/system");
        let conf = is_read.then(|| SYSCTL_CONF.to_owned());
        Ok(files.into_values().chain(conf).collect())
    }

    /// The lines that `apply --persist` has written for pools of other sizes.
    fn of_apply(&mut self) -> Result<Pools, String> {
        let Some(RootEntry::Text(text)) = self.read(TMPFILES)? else {
            return Ok(Pools::new());
        };
        let pool = |line: &str| {
            let words: Vec<_> = line.split_ascii_whitespace().collect();
            let ["w", path, "-", "-", "-", "-", pages] = words[..] else {
                return None;
            };
            let pool = path.strip_prefix("/sys/kernel/mm/hugepages/")?;
            let size = PageSize::from_sysfs_name(pool.strip_suffix("/nr_hugepages")?)?;
            Some((size, (Pages(plain(pages)?), TMPFILES.to_owned())))
        };
        Ok(text.lines().filter_map(pool).collect())
    }

    /// Root's line.
    pub(super) fn told(&mut self) -> Result<Option<(Pages, String)>, String> {
        let told = |line: &str| {
            let (pages, who) = line.split_once(char::is_whitespace)?;
            Some((Pages(plain(pages)?), who.trim().to_owned()))
        };
        match &self.told_lines(TOLD)?[..] {
            [] => Ok(None),
            [line] if let Some(told) = told(line) => Ok(Some(told)),
            _ => Err(format!("{TOLD} has no single line such as 4200 tuned")),
        }
    }
}

/// The count of a command line that has one for the default size, and nothing else on pools; an error for anything else.
pub(super) fn on_command_line(line: &str) -> Result<Option<Pages>, String> {
    // What quotes hold together is not taken apart here.
    let is_quoted = line.contains('"');
    let words: Vec<_> = line
        .split_ascii_whitespace()
        .take_while(|word| is_quoted || *word != "--")
        .filter(|word| SETTERS.iter().any(|setter| word.contains(setter)))
        .collect();
    match words[..] {
        [] => return Ok(None),
        [word] if !is_quoted => {
            if let Some(pages) = word.strip_prefix("hugepages=").and_then(plain) {
                return Ok(Some(Pages(pages)));
            }
        }
        _ => {}
    }
    Err(format!(
        "{COMMAND_LINE} has {}, of which only one plain count is understood",
        words.join(" ")
    ))
}

/// A number as people write it: the kernel reads some others otherwise, or not at all.
fn plain(text: &str) -> Option<u64> {
    text.parse()
        .ok()
        .filter(|number: &u64| number.to_string() == text)
}
