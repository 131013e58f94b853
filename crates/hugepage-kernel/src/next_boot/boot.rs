//! What sets the huge page pools at the next boot: the kernel's command line, sysctl.d, a profile of tuned, and what
//! writes the pools' files later.

use std::collections::BTreeMap;

use crate::memory::sysctl::{self, Assignment};
use crate::next_boot::boot_loader;
use crate::next_boot::boot_writers::{self, PoolWrite, count};
use crate::source::root::if_there;
use crate::{Bytes, Notes, PageSize, Pages, ReadError, Root};

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
    fn parse(text: &str, file: &str) -> Self {
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
    /// The number can't be known; the reason, a clause.
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
        let mut command_lines: Vec<_> = entries.iter().map(|(text, file)| CommandLine::parse(text, file)).collect();
        if command_lines.is_empty() {
            let running = if_there(root.read(COMMAND_LINE))?.unwrap_or_default();
            command_lines.push(CommandLine::parse(&running, COMMAND_LINE));
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
mod tests;
