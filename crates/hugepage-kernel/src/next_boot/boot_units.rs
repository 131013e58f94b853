//! The units of systemd that are started at boot, and which of them set a pool (systemd.unit(5)).

use std::collections::{BTreeMap, BTreeSet};

use super::boot_programs::ProgramSurvey;
use super::mention::{applies_sysctl_conf, first_mention};
use super::unit_keys::{DIRECTORIES, OTHER_TARGETS, PULLS_IN, RUNS};
use crate::Root;

/// The units that are started at boot.
#[derive(Debug, Default)]
pub struct BootUnits {
    /// Whether tuned is started; `None` if no directory of units could be found.
    pub starts_tuned: Option<bool>,
}

impl BootUnits {
    /// Reads the units that are enabled or `wanted`, those that they pull in, and their drop-ins.
    pub fn read<'a>(root: &Root, survey: &mut ProgramSurvey<'_>, wanted: impl Iterator<Item = &'a str>) -> Self {
        let mut directories = Vec::new();
        for directory in DIRECTORIES {
            // Where /lib is a link to /usr/lib, all is there already.
            if directory == "/lib/systemd/system" && root.read_link("/lib").is_ok() {
                continue;
            }
            let names: BTreeSet<_> = survey.names(directory).into_iter().collect();
            directories.push((directory, names));
        }
        let mut units = UnitSurvey { root, survey, directories };
        let mut left: Vec<_> = units.enabled().into_iter().collect();
        let has_units = left.len() > 1;
        left.extend(wanted.map(str::to_owned));
        let mut seen = BTreeSet::new();
        while let Some(name) = left.pop() {
            if seen.insert(name.clone()) {
                left.extend(units.read(&name));
            }
        }
        Self { starts_tuned: has_units.then(|| seen.contains("tuned.service")) }
    }
}

struct UnitSurvey<'a, 'b> {
    root: &'a Root,
    survey: &'a mut ProgramSurvey<'b>,
    /// The directories with the names in them.
    directories: Vec<(&'static str, BTreeSet<String>)>,
}

impl UnitSurvey<'_, '_> {
    /// The units that targets and other units have links to.
    fn enabled(&mut self) -> BTreeSet<String> {
        let is_other = |name: &str| OTHER_TARGETS.iter().any(|target| name.starts_with(&format!("{target}.target.")));
        let is_of_links = |name: &&String| {
            [".wants", ".requires", ".upholds"].iter().any(|end| name.ends_with(end)) && !is_other(name)
        };
        let linked: Vec<_> = self
            .directories
            .iter()
            .flat_map(|(directory, names)| {
                names.iter().filter(is_of_links).map(move |name| format!("{directory}/{name}"))
            })
            .collect();
        let linked = linked.iter().flat_map(|directory| self.survey.names(directory));
        linked.chain(["default.target".to_owned()]).collect()
    }

    /// Looks into a unit and its drop-ins; the units that it pulls in.
    fn read(&mut self, name: &str) -> Vec<String> {
        let Some((file, text)) = self.unit(name) else { return Vec::new() };
        let parts = std::iter::once((file, text)).chain(self.drop_ins(name)).collect::<Vec<_>>();
        let replaced = replacements(name, &parts);
        let directory = parts.iter().flat_map(|(_, text)| assignments(text));
        let directory = directory
            .filter(|(key, _)| *key == "WorkingDirectory")
            .map(|(_, value)| value.trim_start_matches('-'))
            .last();
        let mut pulled_in = Vec::new();
        for (file, text) in &parts {
            if first_mention(text).is_some() {
                self.survey.mentions.push(file.clone());
            }
            for (key, value) in assignments(text) {
                if RUNS.contains(&key) {
                    self.survey.apply_sysctl_conf.extend(applies_sysctl_conf(value).then(|| file.clone()));
                    let command = replaced.iter().fold(value.to_owned(), |text, (from, to)| text.replace(from, to));
                    self.survey.command(&command, directory);
                } else if PULLS_IN.contains(&key) {
                    pulled_in.extend(value.split_ascii_whitespace().map(str::to_owned));
                }
            }
        }
        // A timer and its like start the service of the same name.
        if let Some((stem, "timer" | "path" | "socket")) = name.rsplit_once('.') {
            pulled_in.push(format!("{stem}.service"));
        }
        pulled_in
    }

    /// The file of a unit and its text, in the most important directory; `None` if there is none, or it is masked.
    fn unit(&mut self, name: &str) -> Option<(String, String)> {
        for name in [Some(name.to_owned()), template(name)].into_iter().flatten() {
            let directory = self.directories.iter().find(|(_, names)| names.contains(&name));
            if let Some((directory, _)) = directory {
                let file = format!("{directory}/{name}");
                if is_linked_to_nothing(self.root, &file) {
                    return None;
                }
                let text = self.survey.text(&file).filter(|text| !text.is_empty())?;
                return Some((file, text));
            }
        }
        None
    }

    /// The drop-ins of a unit with their texts. One hides those of its name further down.
    fn drop_ins(&mut self, name: &str) -> Vec<(String, String)> {
        let kind = name.rsplit_once('.').map_or("", |(_, kind)| kind);
        let dashes = name.match_indices('-').map(|(at, _)| format!("{}-.{kind}.d", &name[..at]));
        let wanted: Vec<_> = [format!("{name}.d"), format!("{kind}.d")]
            .into_iter()
            .chain(template(name).map(|name| format!("{name}.d")))
            .chain(dashes)
            .collect();
        let mut files = BTreeMap::new();
        for (directory, names) in self.directories.clone() {
            for drop_in in wanted.iter().filter(|wanted| names.contains(*wanted)) {
                for name in self.survey.names(&format!("{directory}/{drop_in}")) {
                    files.entry(name.clone()).or_insert(format!("{directory}/{drop_in}/{name}"));
                }
            }
        }
        let files = files.into_values().filter(|file| file.ends_with(".conf"));
        files.filter_map(|file| Some((file.clone(), self.survey.text(&file)?))).collect()
    }
}

/// Whether a unit's file is a link to /dev/null, which masks it, as an empty file does.
pub(super) fn is_linked_to_nothing(root: &Root, file: &str) -> bool {
    root.read_link(file).is_ok_and(|target| target == "/dev/null")
}

/// `foo@.service` of `foo@bar.service`.
fn template(name: &str) -> Option<String> {
    let ((stem, instance), (_, kind)) = (name.split_once('@')?, name.rsplit_once('.')?);
    (!instance.starts_with('.')).then(|| format!("{stem}@.{kind}"))
}

/// The texts in commands of a unit for which systemd puts others: specifiers, and variables of the unit that are paths.
fn replacements(name: &str, parts: &[(String, String)]) -> Vec<(String, String)> {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let (prefix, instance) = stem.split_once('@').unwrap_or((stem, ""));
    let specifiers = [
        ("%i", instance),
        ("%p", prefix),
        ("%n", name),
        ("%N", stem),
        ("%h", "/root"),
        ("%S", "/var/lib"),
        ("%E", "/etc"),
    ];
    let variables = parts.iter().flat_map(|(_, text)| assignments(text)).filter(|(key, _)| *key == "Environment");
    let variables = variables.flat_map(|(_, value)| value.split_ascii_whitespace());
    let paths = variables.filter_map(|word| word.trim_matches(['"', '\'']).split_once("=/"));
    let of_path = |(name, path): (&str, &str)| {
        [format!("${{{name}}}"), format!("${name}")].map(|from| (from, format!("/{path}")))
    };
    let specifiers = specifiers.map(|(from, to)| (from.to_owned(), to.to_owned()));
    specifiers.into_iter().chain(paths.flat_map(of_path)).collect()
}

/// The keys and values of a unit. A backslash at the end of a line continues it.
fn assignments(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut key = "";
    text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';', '['])).filter_map(move |line| {
        let (name, value) = match key {
            "" => line.split_once('=').map(|(name, value)| (name.trim(), value.trim()))?,
            continued => (continued, line),
        };
        key = if line.ends_with('\\') { name } else { "" };
        Some((name, value))
    })
}
