//! What tuned's active profiles set (tuned.conf(5), tuned-main.conf(5)).

use crate::memory::sysctl::Assignment;
use crate::source::root::if_there;
use crate::{ReadError, Root};

use super::mention::first_mention;

const PLACES: [&str; 4] = ["/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned"];
/// Profiles that include one another without end.
const MAX_DEPTH: u32 = 10;
/// Keys by which a section applies to some machines only, or replaces another.
const CONDITIONS: [&str; 6] = ["enabled", "replace", "drop", "uname_regex", "cpuinfo_regex", "devices_udev_regex"];

/// The active profiles and those that they include.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TunedProfile {
    /// What sections of the type sysctl assign, in their order; a value that is not understood is as it is written.
    pub assignments: Vec<(String, Assignment)>,
    /// Files with other sections or scripts that mention pools.
    pub not_understood: Vec<String>,
    /// Whether sysctl.d is applied again after a profile with a section of the type sysctl (`reapply_sysctl`, its default).
    pub reapplies_sysctl: bool,
}

impl TunedProfile {
    /// Reads the active profiles.
    pub fn active(root: &Root) -> Result<Self, ReadError> {
        let main = if_there(root.read("/etc/tuned/tuned-main.conf"))?.unwrap_or_default();
        let value = key_values(&main).find(|(name, _)| *name == "reapply_sysctl");
        let is_no = |value: &str| ["0", "false", "no", "off"].contains(&value.to_ascii_lowercase().as_str());
        let mut found = Self { reapplies_sysctl: value.is_none_or(|(_, value)| !is_no(value)), ..Self::default() };
        // The second one's counts after those that an administrator has chosen.
        for file in ["/etc/tuned/active_profile", "/etc/tuned/post_loaded_profile"] {
            let profiles = if_there(root.read(file))?.unwrap_or_default();
            for profile in profiles.split_ascii_whitespace() {
                found.add(root, profile, 0)?;
            }
        }
        Ok(found)
    }

    /// Whether tuned applies the files of /run/sysctl.d and /etc/sysctl.d and then /etc/sysctl.conf after its own (plugin_sysctl.py).
    pub fn applies_sysctl(&self) -> bool {
        self.reapplies_sysctl && !self.assignments.is_empty()
    }

    fn add(&mut self, root: &Root, name: &str, depth: u32) -> Result<(), ReadError> {
        if depth > MAX_DEPTH || name.contains('/') {
            return Ok(());
        }
        for place in PLACES {
            let directory = format!("{place}/{name}");
            let path = format!("{directory}/tuned.conf");
            let Some(text) = if_there(root.read(&path))? else { continue };
            for (_, included) in key_values(&text).filter(|(name, _)| *name == "include") {
                for included in included.split([',', ' ']).filter(|name| !name.is_empty()) {
                    match included.contains('$') {
                        true => self.not_understood.push(path.clone()),
                        false => self.add(root, included, depth + 1)?,
                    }
                }
            }
            for (name, section) in sections(&text) {
                self.add_section(root, name, &section, (&directory, &path))?;
            }
            break;
        }
        Ok(())
    }

    fn add_section(
        &mut self,
        root: &Root,
        name: &str,
        lines: &str,
        (directory, path): (&str, &str),
    ) -> Result<(), ReadError> {
        let kind = key_values(lines).find(|(name, _)| *name == "type").map_or(name, |(_, kind)| kind);
        let is_mentioned = first_mention(lines).is_some();
        let has_condition = key_values(lines).any(|(name, _)| CONDITIONS.contains(&name));
        match kind {
            "sysctl" if is_mentioned && has_condition => self.not_understood.push(path.to_owned()),
            "sysctl" => {
                for (name, value) in key_values(lines) {
                    let name = name.replace('/', ".");
                    self.assignments.retain(|(other, _)| *other != name);
                    self.assignments.push((name, Assignment { value: value.to_owned(), file: path.to_owned() }));
                }
            }
            // It changes the boot loader's files when the profile is chosen: they count.
            "bootloader" | "variables" | "main" => {}
            "script" => {
                for (_, script) in key_values(lines).filter(|(name, _)| *name == "script") {
                    let file = script.replace("${i:PROFILE_DIR}", directory);
                    let file = if file.starts_with('/') { file } else { format!("{directory}/{file}") };
                    let text = if_there(root.read(&file))?.unwrap_or_default();
                    self.not_understood.extend(first_mention(&text).map(|_| file));
                }
            }
            _ if is_mentioned => self.not_understood.push(path.to_owned()),
            _ => {}
        }
        Ok(())
    }
}

/// The sections with their lines; what is before the first has an empty name.
fn sections(text: &str) -> Vec<(&str, String)> {
    let mut found = vec![("", String::new())];
    for line in text.lines().map(str::trim) {
        match line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((name, _)) => found.push((name, String::new())),
            None => found.iter_mut().next_back().into_iter().for_each(|(_, lines)| *lines += &format!("{line}\n")),
        }
    }
    found
}

fn key_values(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';', '[']));
    lines.filter_map(|line| line.split_once('=')).map(|(name, value)| (name.trim(), value.trim()))
}
