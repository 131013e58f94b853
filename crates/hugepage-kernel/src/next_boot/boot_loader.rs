//! The kernel's command line at the next boot, as the boot loader's files have it.

use crate::source::root::if_there;
use crate::{Notes, Root};

/// Boot Loader Specification, type 1: a file for each entry.
const ENTRIES: &str = "/boot/loader/entries";
/// What GRUB's own scripts generate, on Debian and on Red Hat.
const GRUB: [&str; 2] = ["/boot/grub/grub.cfg", "/boot/grub2/grub.cfg"];
/// GRUB's variables, `kernelopts` among them.
const GRUB_ENVIRONMENT: [&str; 2] = ["/boot/grub2/grubenv", "/boot/grub/grubenv"];

/// The command lines of all entries that start a system, each with its file. Empty if there are none. A file that may
/// not be read is a note.
pub fn command_lines(root: &Root, notes: &mut Notes) -> Vec<(String, String)> {
    let mut read = |path: &str| notes.keep(if_there(root.read(path))).flatten();
    let mut found = Vec::new();
    let options = GRUB_ENVIRONMENT
        .iter()
        .find_map(|path| read(path)?.lines().find_map(|line| line.strip_prefix("kernelopts=").map(str::to_owned)));
    let mut may_not_list = None;
    let names = if_there(root.list(ENTRIES)).unwrap_or_else(|error| {
        may_not_list = Some(error.to_string());
        None
    });
    for name in names.unwrap_or_default() {
        let path = format!("{ENTRIES}/{name}");
        // The rescue entry keeps the options of the installation.
        let Some(text) = (name.ends_with(".conf") && !name.contains("rescue")).then(|| read(&path)).flatten() else {
            continue;
        };
        let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("options"));
        let line = lines.collect::<String>().replace("$kernelopts", options.as_deref().unwrap_or_default());
        found.push((line, path));
    }
    if found.is_empty() {
        for path in GRUB {
            let text = read(path).unwrap_or_default();
            let lines = text.lines().map(str::trim_start).filter(|line| starts_a_system(line));
            found.extend(lines.map(|line| (line.to_owned(), path.to_owned())));
        }
    }
    if let Some(error) = may_not_list {
        notes.add(error);
    }
    found
}

/// Whether a line of grub.cfg is the command line of an ordinary entry: none of memtest, and none of the recovery mode,
/// which Debian's scripts give other options.
fn starts_a_system(line: &str) -> bool {
    const RECOVERY: [&str; 6] =
        ["single", "recovery", "rescue", "emergency", "systemd.unit=rescue.target", "systemd.unit=emergency.target"];
    let mut words = line.split_ascii_whitespace();
    words.next().is_some_and(|word| ["linux", "linux16", "linuxefi"].contains(&word))
        && !line.contains("memtest")
        && !words.any(|word| RECOVERY.contains(&word))
}
