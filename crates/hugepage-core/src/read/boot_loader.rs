//! The kernel's command line at the next boot, as the boot loader's files have it.

use crate::read::Root;
use crate::read::root::if_there;

/// Boot Loader Specification, type 1: a file for each entry.
const ENTRIES: &str = "/boot/loader/entries";
/// What GRUB's own scripts generate, on Debian and on Red Hat.
const GRUB: [&str; 2] = ["/boot/grub/grub.cfg", "/boot/grub2/grub.cfg"];
/// GRUB's variables, `kernelopts` among them.
const GRUB_ENVIRONMENT: [&str; 2] = ["/boot/grub2/grubenv", "/boot/grub/grubenv"];

/// The command lines of all entries, each with its file. Empty if there are none, or they may not be read.
pub fn command_lines(root: &Root) -> Vec<(String, String)> {
    let read = |path: &str| if_there(root.read(path)).ok().flatten();
    let mut found = Vec::new();
    let options = GRUB_ENVIRONMENT
        .iter()
        .find_map(|path| read(path)?.lines().find_map(|line| line.strip_prefix("kernelopts=").map(str::to_owned)));
    for name in root.list(ENTRIES).unwrap_or_default() {
        let path = format!("{ENTRIES}/{name}");
        // The rescue entry keeps the options of the installation.
        let Some(text) = (name.ends_with(".conf") && !name.contains("rescue")).then(|| read(&path)).flatten() else {
            continue;
        };
        let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("options"));
        let line = lines.collect::<String>().replace("$kernelopts", options.as_deref().unwrap_or_default());
        found.push((line, path));
    }
    if !found.is_empty() {
        return found;
    }
    for path in GRUB {
        let text = read(path).unwrap_or_default();
        let lines = text.lines().map(str::trim_start).filter(|line| line.starts_with("linux"));
        found.extend(lines.map(|line| (line.to_owned(), path.to_owned())));
    }
    found
}
