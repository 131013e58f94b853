//! The kernel's command line at the next boot, as the boot loader's files have it.

use std::collections::BTreeSet;

use super::releases::Releases;
use crate::source::root::if_there;
use crate::{Notes, Root};

/// Boot Loader Specification, type 1: a file for each entry, wherever the partition is mounted.
const ENTRIES: [&str; 3] = ["/boot/loader/entries", "/efi/loader/entries", "/boot/efi/loader/entries"];
/// Boot Loader Specification, type 2: images with a kernel and its command line.
const UNIFIED_IMAGES: [&str; 3] = ["/boot/EFI/Linux", "/efi/EFI/Linux", "/boot/efi/EFI/Linux"];
/// Where each distribution keeps GRUB's configuration for EFI.
const EFI_DIRECTORY: &str = "/boot/efi/EFI";
/// GRUB's variables that outlive a boot, `kernelopts` and `tuned_params` among them.
const GRUB_ENVIRONMENTS: [&str; 2] = ["/boot/grub2/grubenv", "/boot/grub/grubenv"];
/// The last two load the kernel of an entry that starts Xen.
const GRUB_WORDS: &[&str] = &["linux", "linux16", "linuxefi", "module", "module2"];
/// What a kernel is installed with that has no entry of its own yet.
const KERNEL_INSTALL: &str = "/etc/kernel/cmdline";

/// The configuration files of boot loaders, with the words before a command line. An empty word stands for each line.
const CONFIGURATIONS: [(&str, &[&str]); 20] = [
    ("/boot/grub/grub.cfg", GRUB_WORDS),
    ("/boot/grub2/grub.cfg", GRUB_WORDS),
    ("/boot/grub/custom.cfg", GRUB_WORDS),
    ("/boot/grub2/custom.cfg", GRUB_WORDS),
    // GRUB before 2.
    ("/boot/grub/grub.conf", &["kernel"]),
    ("/boot/grub/menu.lst", &["kernel"]),
    ("/boot/extlinux/extlinux.conf", &["append"]),
    ("/boot/extlinux.conf", &["append"]),
    ("/boot/syslinux/syslinux.cfg", &["append"]),
    ("/etc/yaboot.conf", &["append"]),
    ("/boot/limine.conf", &["cmdline:", "kernel_cmdline:"]),
    ("/boot/limine/limine.conf", &["cmdline:", "kernel_cmdline:"]),
    ("/boot/refind_linux.conf", &[""]),
    ("/etc/zipl.conf", &["parameters"]),
    ("/etc/lilo.conf", &["append"]),
    ("/boot/firmware/cmdline.txt", &[""]),
    ("/boot/firmware/current/cmdline.txt", &[""]),
    ("/boot/cmdline.txt", &[""]),
    // A part of it, which U-Boot adds.
    ("/boot/armbianEnv.txt", &["extraargs"]),
    ("/boot/uEnv.txt", &["cmdline", "optargs"]),
];

/// One entry of a boot loader that starts a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootEntry {
    /// The file that has it.
    pub file: String,
    /// The command line, or why it is unknown.
    pub command_line: Result<String, String>,
    /// The kernels that it may start.
    pub releases: Releases,
}

/// All entries that start a system; `running` is the release that runs. Empty if there are none. A file that may not be read is a
/// note, unless others have entries.
pub fn entries(root: &Root, running: Option<&str>, notes: &mut Notes) -> Vec<BootEntry> {
    let mut refused = Notes::default();
    let mut loader = BootLoader { root, running, refused: &mut refused, found: Vec::new() };
    let variables = loader.variables();
    for directory in ENTRIES {
        for name in loader.list(directory) {
            // The rescue entry keeps the options of the installation.
            if name.ends_with(".conf") && !name.contains("rescue") {
                loader.add_entry(&format!("{directory}/{name}"), &variables);
            }
        }
    }
    for (path, words) in CONFIGURATIONS {
        loader.add_configuration(path, words, &variables);
    }
    for name in loader.list(EFI_DIRECTORY) {
        loader.add_configuration(&format!("{EFI_DIRECTORY}/{name}/grub.cfg"), GRUB_WORDS, &variables);
        loader.add_configuration(&format!("{EFI_DIRECTORY}/{name}/elilo.conf"), &["append"], &variables);
    }
    for directory in UNIFIED_IMAGES {
        for name in loader.list(directory).into_iter().filter(|name| name.ends_with(".efi")) {
            let file = format!("{directory}/{name}");
            let why = format!("{file} is a unified kernel image, and its command line is not read");
            loader.add(file, Err(why), &name);
        }
    }
    let found = loader.found;
    if found.is_empty() {
        refused.into_vec().into_iter().for_each(|note| notes.add(note));
    }
    found
}

/// Whether something else than `entries` may start: GRUB has not started the kernel that runs, which has its mark, or a command has
/// to install what a file says.
pub fn are_uncertain(entries: &[BootEntry], running: Option<&str>) -> bool {
    let is_by_command = |entry: &BootEntry| ["/etc/zipl.conf", "/etc/lilo.conf"].contains(&entry.file.as_str());
    let is_of_grub = |entry: &BootEntry| entry.file.ends_with("/grub.cfg");
    entries.iter().any(is_by_command)
        || entries.iter().all(is_of_grub)
            && running.is_some_and(|text| !text.trim().is_empty() && !text.contains("BOOT_IMAGE="))
}

/// What will be in the next entry, where no entry can be found.
pub fn to_be_installed(root: &Root) -> Option<(String, &'static str)> {
    Some((if_there(root.read(KERNEL_INSTALL)).ok()??, KERNEL_INSTALL))
}

struct BootLoader<'a> {
    root: &'a Root,
    running: Option<&'a str>,
    refused: &'a mut Notes,
    found: Vec<BootEntry>,
}

/// The variables of GRUB.
#[derive(Debug, Default)]
struct GrubVariables {
    /// A name, and a value that it may have.
    values: BTreeSet<(String, String)>,
    /// Why others may have values that could not be read.
    refused: Option<String>,
}

impl BootLoader<'_> {
    fn read(&mut self, path: &str) -> Option<String> {
        self.refused.keep(if_there(self.root.read(path))).flatten()
    }

    fn list(&mut self, path: &str) -> Vec<String> {
        self.refused.keep(if_there(self.root.list(path))).flatten().unwrap_or_default()
    }

    fn add(&mut self, file: String, command_line: Result<String, String>, image: &str) {
        let releases = Releases::of_image(image, self.running);
        self.found.push(BootEntry { file, command_line, releases });
    }

    /// A file of the Boot Loader Specification: keys, and their values behind a blank.
    fn add_entry(&mut self, path: &str, variables: &GrubVariables) {
        let Some(text) = self.read(path) else { return };
        let values = |key: &'static str| {
            text.lines().filter_map(move |line| {
                line.trim_start().strip_prefix(key).filter(|rest| rest.starts_with([' ', '\t'])).map(str::trim)
            })
        };
        let image = ["version", "linux", "efi", "uki"].iter().find_map(|key| values(key).next()).unwrap_or_default();
        let options = values("options").collect::<Vec<_>>().join(" ");
        self.add(path.to_owned(), expanded(&options, variables, path), image);
    }

    /// A configuration file in which one of `words` stands before the command line.
    fn add_configuration(&mut self, path: &str, words: &[&str], variables: &GrubVariables) {
        let Some(text) = self.read(path) else { return };
        for line in text.lines().map(str::trim) {
            let (word, rest) = line.split_once([' ', '\t', '=']).unwrap_or((line, ""));
            let is_command_line = words.contains(&"") || words.contains(&word.to_ascii_lowercase().as_str());
            if line.is_empty() || line.starts_with('#') || !is_command_line || !starts_a_system(line) {
                continue;
            }
            let line = if words.contains(&"") { line } else { rest.trim_start_matches([' ', '\t', '=']) };
            let line = line.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(line);
            let image = line.split_ascii_whitespace().next().unwrap_or_default();
            if word.starts_with("module") && !image.contains("vmlinuz") {
                continue;
            }
            self.add(path.to_owned(), expanded(line, variables, path), image);
        }
    }

    /// What grubenv has, and what grub.cfg sets.
    fn variables(&mut self) -> GrubVariables {
        let mut found = GrubVariables::default();
        let environment = GRUB_ENVIRONMENTS.into_iter().find_map(|path| match if_there(self.root.read(path)) {
            Ok(text) => text,
            Err(error) => {
                found.refused = Some(error.to_string());
                None
            }
        });
        let environment = environment.unwrap_or_default();
        found.values.extend(environment.lines().filter_map(|line| line.split_once('=')).map(owned));
        let efi = self.list(EFI_DIRECTORY).into_iter().map(|name| format!("{EFI_DIRECTORY}/{name}/grub.cfg"));
        let configurations = CONFIGURATIONS.iter().take(2).map(|(path, _)| (*path).to_owned());
        for path in configurations.chain(efi).collect::<Vec<_>>() {
            let text = self.read(&path).unwrap_or_default();
            let mut unless_set = "";
            for line in text.lines().map(str::trim) {
                if let Some(condition) = line.strip_prefix("if [ -z \"$") {
                    unless_set = condition.split(['"', ']']).next().unwrap_or_default().trim_matches(['{', '}']);
                }
                let Some((name, value)) = line.strip_prefix("set ").and_then(|rest| rest.split_once('=')) else {
                    continue;
                };
                let is_set = |name: &str| environment.lines().any(|line| line.starts_with(&format!("{name}=")));
                if !(unless_set == name && is_set(name)) {
                    found.values.insert(owned((name, value.trim_matches(['"', '\'']))));
                }
            }
        }
        found
    }
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// The words with the values of GRUB's variables, or why those are unknown. One that is nowhere set is empty.
fn expanded(words: &str, variables: &GrubVariables, file: &str) -> Result<String, String> {
    let mut text = String::new();
    let mut rest = words;
    while let Some((before, behind)) = rest.split_once('$') {
        text += before;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (name, behind) = match behind.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some(braced) => braced,
            None => behind.split_at(behind.find(|c| !is_name(c)).unwrap_or(behind.len())),
        };
        let mut values: Vec<_> =
            variables.values.iter().filter(|(known, _)| known == name).map(|(_, value)| value).collect();
        // Several values matter only if one of them is about huge pages.
        if values.len() > 1 && values.iter().any(|value| value.contains("huge") || value.contains('$')) {
            return Err(format!("the variable {name} in {file} has several values"));
        }
        if let (true, Some(why)) = (values.is_empty(), &variables.refused) {
            return Err(format!("the variable {name} in {file} is unknown: {why}"));
        }
        text.extend(values.pop().map(String::as_str));
        rest = behind;
    }
    text += rest;
    match text.contains('$') {
        true if text.contains("huge") => Err(format!("a variable in {file} has the name of another as its value")),
        _ => Ok(text),
    }
}

/// Whether a line starts an ordinary system: none of memtest, and none of the recovery mode, which Debian's scripts give other
/// options.
fn starts_a_system(line: &str) -> bool {
    const RECOVERY: [&str; 6] =
        ["single", "recovery", "rescue", "emergency", "systemd.unit=rescue.target", "systemd.unit=emergency.target"];
    let mut words = line.split_ascii_whitespace().map(|word| word.trim_matches('"'));
    !line.contains("memtest") && !words.any(|word| RECOVERY.contains(&word))
}
