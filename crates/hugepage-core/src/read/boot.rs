//! What sets the huge page pools at the next boot: the kernel's command line, sysctl.d, a profile of tuned.

use std::collections::BTreeMap;

use crate::read::Root;
use crate::read::root::if_there;
use crate::read::sysctl::{self, Assignment};
use crate::{PageSize, Pages, ReadError};

/// All settings of the pools, each with the file that it comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NextBoot {
    /// `hugepagesz=` and `hugepages=` of the running kernel's command line; no size means the default one.
    pub command_line: Vec<(Option<PageSize>, Pages)>,
    /// What sysctl.d assigns.
    pub sysctl: BTreeMap<String, Assignment>,
    /// What tuned's active profile assigns.
    pub tuned: BTreeMap<String, Assignment>,
    /// Whether sysctl.d overrides tuned (`reapply_sysctl`, its default).
    pub sysctl_wins: bool,
}

impl NextBoot {
    /// Reads all settings.
    pub fn read(root: &Root) -> Result<Self, ReadError> {
        let command_line = if_there(root.read(COMMAND_LINE))?.unwrap_or_default();
        Ok(Self {
            command_line: pools_of(&command_line),
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
        let assigned = self.assignment("vm.nr_hugepages").filter(|_| is_default);
        if let Some(Assignment { value, file }) = assigned
            && let Ok(pages) = value.parse()
        {
            return Some((Pages(pages), file.clone()));
        }
        let of_size = |wanted: &Option<PageSize>| wanted.map_or(is_default, |wanted| wanted == size);
        let (_, pages) = self.command_line.iter().rev().find(|(wanted, _)| of_size(wanted))?;
        Some((*pages, COMMAND_LINE.to_owned()))
    }
}

const COMMAND_LINE: &str = "/proc/cmdline";

/// `hugepages=` applies to the `hugepagesz=` before it, else to the default size (kernel-parameters).
fn pools_of(command_line: &str) -> Vec<(Option<PageSize>, Pages)> {
    let mut size = None;
    let mut pools = Vec::new();
    for word in command_line.split_ascii_whitespace() {
        match word.split_once('=') {
            Some(("hugepagesz", value)) => size = memparse(value),
            Some(("hugepages", value)) => pools.extend(value.parse().ok().map(|pages| (size, Pages(pages)))),
            _ => {}
        }
    }
    pools
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
