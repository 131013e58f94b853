//! What sets the huge page pools at the next boot: the kernel's command line, sysctl.d, a profile of tuned, and what
//! writes the pools' files later.
//!
//! Known is only what is understood. Whatever runs at boot, mentions pools and is not understood makes them unknown.

use std::collections::BTreeMap;

use super::boot_loader::{self, BootEntry};
use super::boot_programs::ProgramSurvey;
use super::boot_units::{self, BootUnits};
use super::boot_writers::{self, PoolWrite};
use super::command_line::CommandLine;
use super::machine::{Machine, RUNNING_COMMAND_LINE};
use super::mention::mentions_pool;
use super::releases::Releases;
use super::tuned::TunedProfile;
use crate::host::kernel_release::KernelRelease;
use crate::memory::sysctl::{self, Assignment};
use crate::proc::namespace;
use crate::source::root::if_there;
use crate::{Notes, PageSize, ReadError, Root};

const SYSCTL_SERVICE: &str = "/etc/systemd/system/systemd-sysctl.service";

/// All settings of the pools, each with the file that it comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NextBoot {
    /// The command lines of the boot loader's entries, of which one is the next one's; that of the running kernel where
    /// the boot loader's files have none; empty if that is not there either.
    pub command_lines: Vec<CommandLine>,
    /// The command line of the running kernel; `None` if it is not there.
    pub running: Option<CommandLine>,
    /// What sysctl.d assigns, in this order; of one name the last counts.
    pub sysctl: Vec<(String, Assignment)>,
    /// Whether the service that applies it never starts.
    pub masks_sysctl: bool,
    /// What tuned's active profile sets.
    pub tuned: TunedProfile,
    /// What tmpfiles.d writes after all that.
    pub tmpfiles: Vec<PoolWrite>,
    /// Whether tuned is started; `None` if unknown.
    pub starts_tuned: Option<bool>,
    /// Files that mention pools and are not understood.
    pub not_understood: Vec<String>,
    /// What starts another kernel than the boot loader's files say, or changes them before the boot, a clause.
    pub other_start: Option<&'static str>,
    /// Whether these files are those of a container, which say nothing of the host.
    pub is_of_container: bool,
    /// The machine, with its pools now.
    pub machine: Machine,
    /// Files of the boot loader that may not be read.
    pub not_read: Vec<String>,
    /// Files of what runs at boot that may not be read.
    pub programs_not_read: Vec<String>,
}

impl NextBoot {
    /// Reads all settings.
    pub fn read(root: &Root) -> Result<Self, ReadError> {
        let mut not_read = Notes::default();
        let machine = Machine::read(root)?;
        let text = if_there(root.read(RUNNING_COMMAND_LINE))?;
        let release = KernelRelease::text(root).or_else(|| release_of_image(text.as_deref()?));
        let entries = boot_loader::entries(root, release.as_deref(), &mut not_read);
        let read =
            |text: &str, file: &str| CommandLine::read(text, file, &Releases::running(release.as_deref()), &machine);
        let running = text.as_deref().map(|text| read(text, RUNNING_COMMAND_LINE));
        let mut command_lines: Vec<_> = entries.iter().map(|entry| command_line(entry, &machine)).collect();
        if command_lines.is_empty() || boot_loader::are_uncertain(&entries, text.as_deref()) {
            command_lines.extend(running.clone());
            // A kernel that is installed with other words, by a boot loader that could not be found.
            command_lines.extend(boot_loader::to_be_installed(root).map(|(text, file)| read(&text, file)));
        }
        let mut programs = ProgramSurvey::new(root);
        let lines = entries.iter().filter_map(|entry| entry.command_line.as_deref().ok()).chain(text.as_deref());
        let wanted = lines.flat_map(str::split_ascii_whitespace).filter_map(|word| word.strip_prefix("systemd.wants="));
        let units = BootUnits::read(root, &mut programs, wanted);
        let masks_sysctl = boot_units::is_linked_to_nothing(root, SYSCTL_SERVICE)
            || programs.text(SYSCTL_SERVICE).is_some_and(|text| text.is_empty());
        programs.read_places();
        let tuned = TunedProfile::active(root)?;
        let mut sysctl = sysctl::in_order_at_next_boot(root)?;
        let of_sysctl_conf = sysctl::of_sysctl_conf(root)?;
        let is_other = |(name, own): &(String, Assignment)| {
            let is_same = |(other, found): &(String, Assignment)| other == name && found.value == own.value;
            mentions_pool(name) && !sysctl.iter().any(is_same)
        };
        if of_sysctl_conf.iter().any(is_other) {
            programs.mentions.append(&mut programs.apply_sysctl_conf);
        }
        if tuned.applies_sysctl() && units.starts_tuned != Some(false) {
            sysctl.extend(of_sysctl_conf);
        }
        Ok(Self {
            command_lines,
            running,
            sysctl,
            masks_sysctl,
            tuned,
            tmpfiles: boot_writers::tmpfiles(root)?,
            starts_tuned: units.starts_tuned,
            not_understood: programs.mentions,
            other_start: other_start(root)?,
            is_of_container: namespace::shows_files_of_container(root),
            machine,
            not_read: not_read.into_vec(),
            programs_not_read: programs.not_read,
        })
    }

    /// The default page size, which sysctl.d and counts without a size are for; or why it is unknown, a clause.
    pub fn default_size(&self) -> Result<PageSize, String> {
        let mut sizes = self.command_lines.iter().map(|line| (&line.file, line.default_size.as_ref()));
        let Some((file, first)) = sizes.next() else {
            return self.machine.own_default.ok_or_else(|| "the kernel's default page size is unknown".to_owned());
        };
        for (other, size) in sizes {
            if size.map_err(String::clone)? != first.map_err(String::clone)? {
                return Err(format!(
                    "the entries of the boot loader have different default page sizes ({}), and which one is next is unknown",
                    both(file, other)
                ));
            }
        }
        first.copied().map_err(String::clone)
    }
}

fn command_line(entry: &BootEntry, machine: &Machine) -> CommandLine {
    match &entry.command_line {
        Ok(text) => CommandLine::read(text, &entry.file, &entry.releases, machine),
        Err(why) => CommandLine {
            file: entry.file.clone(),
            default_size: Err(why.clone()),
            pools: BTreeMap::new(),
            not_understood: Some(why.clone()),
        },
    }
}

fn other_start(root: &Root) -> Result<Option<&'static str>, ReadError> {
    let is_loaded = if_there(root.read("/sys/kernel/kexec_loaded"))?.is_some_and(|text| text.trim() == "1");
    Ok(match is_loaded {
        true => Some("a kernel is loaded by kexec, and its command line is unknown"),
        // ostree-finalize-staged.service writes the boot loader's entry at the shutdown.
        false if root.exists("/run/ostree/staged-deployment") => {
            Some("a deployment of ostree is staged, and its command line is unknown")
        }
        false => None,
    })
}

/// The release in `BOOT_IMAGE=/vmlinuz-6.12.8-amd64`, which GRUB adds.
fn release_of_image(command_line: &str) -> Option<String> {
    let image = command_line.split_ascii_whitespace().find_map(|word| word.strip_prefix("BOOT_IMAGE="))?;
    let release = image.rsplit('/').next()?.split_once('-')?.1;
    KernelRelease::parse(release).map(|_| release.to_owned())
}

/// Two files, or one.
pub(super) fn both(first: &str, other: &str) -> String {
    if first == other { first.to_owned() } else { format!("{first} and {other}") }
}

#[cfg(test)]
mod tests;
