//! What runs at boot beside systemd's units, and whether it may set a pool. A mention of pools in one of these places means that
//! they are unknown: shell, cron and udev are not read as languages.
//!
//! The survey is bounded. It reads regular files alone, and of each its beginning.

use std::collections::BTreeSet;
use std::io::Read;

use super::mention::{applies_sysctl_conf, first_mention, mentions_pool};
use crate::source::root::if_there;
use crate::{ReadError, Root};

/// The most files that one survey reads.
const MAX_FILES: usize = 1500;
/// What is read of each. No script that administrators write is longer.
const MAX_BYTES: u64 = 256 << 10;
/// How a program of the CPU begins (elf(5)).
const PROGRAM_OF_CPU: &[u8] = b"\x7fELF";
/// How far scripts that call scripts are followed.
const MAX_DEPTH: u32 = 3;

/// Files, and directories whose files count, in which a mention means unknown.
const PLACES: [&str; 34] = [
    "/etc/rc.local",
    "/etc/rc.d/rc.local",
    "/etc/init.d/boot.local",
    "/etc/init.d/after.local",
    "/etc/local.d/",
    "/etc/conf.d/",
    "/etc/crontab",
    "/etc/cron.d/",
    "/etc/anacrontab",
    // Of root, on Red Hat, Debian and SUSE.
    "/var/spool/cron/root",
    "/var/spool/cron/crontabs/root",
    "/var/spool/cron/tabs/root",
    "/etc/udev/rules.d/",
    "/usr/lib/udev/rules.d/",
    "/etc/modprobe.d/",
    "/etc/network/interfaces",
    "/etc/network/if-up.d/",
    "/etc/NetworkManager/dispatcher.d/",
    "/etc/ufw/sysctl.conf",
    "/etc/libvirt/hooks/",
    "/etc/dpdk/dpdk.conf",
    "/etc/cloud/cloud.cfg",
    "/etc/cloud/cloud.cfg.d/",
    "/var/lib/cloud/scripts/per-boot/",
    "/var/lib/cloud/instance/user-data.txt",
    "/var/lib/cloud/instance/vendor-data.txt",
    "/var/lib/cloud/instance/cloud-config.txt",
    "/etc/inittab",
    "/etc/init/",
    "/etc/rc.d/rc.sysinit",
    "/etc/sysctl.ktune",
    "/etc/ktune.d/",
    "/etc/saptune/extra/",
    "/etc/saptune/override/",
];
/// Scripts that are started where a link of a runlevel names them.
const INIT_SCRIPTS: [&str; 2] = ["/etc/init.d", "/etc/rc.d/init.d"];
const RUNLEVELS: [&str; 13] = [
    "/etc/rcS.d",
    "/etc/rc2.d",
    "/etc/rc3.d",
    "/etc/rc5.d",
    "/etc/rc.d/rcS.d",
    "/etc/rc.d/rc2.d",
    "/etc/rc.d/rc3.d",
    "/etc/rc.d/rc5.d",
    "/etc/init.d/boot.d",
    "/etc/init.d/rc3.d",
    "/etc/init.d/rc5.d",
    "/etc/runlevels/boot",
    "/etc/runlevels/default",
];
/// Where a program is searched that is named without a directory (systemd.exec(5)).
const SEARCHED: [&str; 4] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"];
/// How files of data end, which set nothing: queries of exporters have the names of pools' counters.
const DATA: [&str; 6] = [".yaml", ".yml", ".json", ".toml", ".sql", ".html"];
/// Where nothing is opened: devices do something when they are, and the kernel's files are no programs.
const NOT_OPENED: [&str; 4] = ["/dev/", "/proc/", "/sys/", "/run/"];
/// Where administrators have scripts that others call.
const OF_ADMINISTRATORS: [&str; 6] = ["/usr/local/", "/opt/", "/etc/", "/root/", "/srv/", "/home/"];

/// One survey of what runs at boot.
#[derive(Debug)]
pub struct ProgramSurvey<'a> {
    root: &'a Root,
    seen: BTreeSet<String>,
    /// The files that mention pools, and are not understood.
    pub mentions: Vec<String>,
    /// The files that apply /etc/sysctl.conf.
    pub apply_sysctl_conf: Vec<String>,
    /// What could not be read.
    pub not_read: Vec<String>,
}

impl<'a> ProgramSurvey<'a> {
    /// A survey that has read nothing yet.
    pub fn new(root: &'a Root) -> Self {
        Self { root, seen: BTreeSet::new(), mentions: Vec::new(), apply_sysctl_conf: Vec::new(), not_read: Vec::new() }
    }

    /// Looks into every place that is not systemd's.
    pub fn read_places(&mut self) {
        for place in PLACES {
            match place.strip_suffix('/') {
                Some(directory) => {
                    for name in self.names(directory) {
                        self.file(&format!("{directory}/{name}"), 0);
                    }
                }
                None => self.file(place, 0),
            }
        }
        let links: Vec<_> = RUNLEVELS.into_iter().flat_map(|directory| self.names(directory)).collect();
        // `S20name`; in OpenRC's directories plain names.
        let of_link = |link: &str| match link.strip_prefix('S').and_then(|rest| rest.split_at_checked(2)) {
            Some((number, name)) if number.bytes().all(|byte| byte.is_ascii_digit()) => name.to_owned(),
            _ => link.to_owned(),
        };
        let started: BTreeSet<_> = links.iter().map(|link| of_link(link)).collect();
        for directory in INIT_SCRIPTS {
            for name in self.names(directory) {
                if started.contains(&name) {
                    self.file(&format!("{directory}/{name}"), 0);
                }
            }
        }
    }

    /// Looks into the programs of a command of a unit, and into the files that it names, from its working directory on.
    pub fn command(&mut self, command: &str, directory: Option<&str>) {
        let command = command.trim_start_matches(['@', '-', ':', '+', '!', '|']);
        let mut words = command.split_ascii_whitespace();
        let program = words.next().unwrap_or_default();
        if !program.is_empty() && !program.contains('/') {
            SEARCHED.into_iter().for_each(|directory| self.file(&format!("{directory}/{program}"), 0));
        }
        if let Some(directory) = directory {
            let relative = words.filter(|word| !word.starts_with(['/', '-']));
            relative.for_each(|word| self.file(&format!("{directory}/{}", word.trim_start_matches("./")), 0));
        }
        paths(command).for_each(|path| self.file(path, 0));
    }

    /// The names in a directory. One that may not be listed is in `not_read`.
    pub fn names(&mut self, directory: &str) -> Vec<String> {
        let listed = self.root.list(directory);
        self.keep(listed).unwrap_or_default()
    }

    /// The text of a regular file that is no program of the CPU; `None` if there is none.
    pub fn text(&mut self, path: &str) -> Option<String> {
        if self.root.modified(path).is_none() {
            // What is there and is no regular file may do something when it is opened.
            let opened = (!self.root.exists(path)).then(|| self.root.open(path))?;
            self.keep(opened);
            return None;
        }
        if self.seen.len() > MAX_FILES {
            let note = format!("more than {MAX_FILES} files run at boot, and others were not read");
            self.not_read.retain(|other| *other != note);
            self.not_read.push(note);
            return None;
        }
        let opened = self.root.open(path);
        let mut file = self.keep(opened)?;
        let mut bytes = Vec::new();
        let begun = file.by_ref().take(PROGRAM_OF_CPU.len() as u64).read_to_end(&mut bytes);
        if bytes == PROGRAM_OF_CPU {
            return None;
        }
        let read = begun.and_then(|_| file.take(MAX_BYTES).read_to_end(&mut bytes));
        let read = read.map_err(|source| self.root.error("read", path, source));
        self.keep(read)?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn keep<T>(&mut self, result: Result<T, ReadError>) -> Option<T> {
        if_there(result).map_err(|error| self.not_read.push(error.to_string())).ok().flatten()
    }

    /// Looks for a mention in a file, and in the files of administrators that it names.
    fn file(&mut self, path: &str, depth: u32) {
        let is_program =
            !NOT_OPENED.iter().any(|start| path.starts_with(start)) && !DATA.iter().any(|end| path.ends_with(end));
        if !is_program || !self.seen.insert(path.to_owned()) {
            return;
        }
        let Some(text) = self.text(path) else { return };
        self.apply_sysctl_conf.extend(text.lines().any(applies_sysctl_conf).then(|| path.to_owned()));
        if first_mention(&text).is_some() {
            self.mentions.push(path.to_owned());
        } else if depth < MAX_DEPTH {
            let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
            let named = lines.flat_map(paths);
            for path in named.filter(|path| is_of_administrators(path)) {
                self.file(path, depth + 1);
            }
        }
    }
}

/// Keeps the lines of a script that mention pools, and the files that its other lines name; of a file that scripts read, too.
pub fn what_counts(text: &str) -> String {
    if text.as_bytes().starts_with(PROGRAM_OF_CPU) {
        return String::from_utf8_lossy(PROGRAM_OF_CPU).into_owned();
    }
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#')).filter_map(|line| {
        match mentions_pool(line) || applies_sysctl_conf(line) {
            true => Some(line.to_owned()),
            false => Some(paths(line).filter(|path| is_of_administrators(path)).collect::<Vec<_>>().join(" "))
                .filter(|line| !line.is_empty()),
        }
    });
    lines.map(|line| line + "\n").collect()
}

/// A line of a unit with its key, program and files, without other arguments; `None` for a key that starts nothing.
pub fn without_arguments(line: &str) -> Option<String> {
    let (key, value) = line.split_once('=')?;
    if super::unit_keys::PULLS_IN.contains(&key) {
        return Some(line.to_owned());
    }
    super::unit_keys::RUNS.contains(&key).then_some(())?;
    let mut words = value.split_ascii_whitespace();
    let program = words.next()?;
    Some(
        std::iter::once(program)
            .chain(words.flat_map(parts).filter(|part| part.starts_with(['/', '$', '.']) || may_be_script(part)))
            .fold(format!("{key}="), |text, word| text + word + " ")
            .trim_end()
            .to_owned(),
    )
}

/// Whether `path` is a unit of systemd, or a drop-in.
pub fn is_unit(path: &str) -> bool {
    super::unit_keys::DIRECTORIES.iter().any(|directory| path.starts_with(&format!("{directory}/")))
}

/// Whether `path` is one of the places in which a mention counts.
pub fn is_place(path: &str) -> bool {
    let is_in = |place: &&str| if place.ends_with('/') { path.starts_with(*place) } else { path == *place };
    PLACES.iter().any(is_in) || INIT_SCRIPTS.iter().any(|place| path.starts_with(&format!("{place}/")))
}

/// Whether `path` may be a script that runs at boot, by where it is or how it is called.
pub fn may_be_script(path: &str) -> bool {
    [".sh", ".run", ".py"].iter().any(|end| path.ends_with(end))
        || ["/bin/", "/sbin/", "/libexec/", "/usr/lib/", "/etc/tuned/", "/etc/default/", "/etc/sysconfig/"]
            .iter()
            .any(|part| path.contains(part))
}

fn is_of_administrators(path: &str) -> bool {
    OF_ADMINISTRATORS.iter().any(|start| path.starts_with(start))
}

/// The absolute paths in a command.
fn paths(command: &str) -> impl Iterator<Item = &str> {
    parts(command).filter(|word| word.len() > 1 && word.starts_with('/') && !word.contains(['*', '$']))
}

/// The words of a command, and what is between the signs in them.
fn parts(command: &str) -> impl Iterator<Item = &str> {
    command.split(|c: char| c.is_whitespace() || "\"'`;&|()<>=,:".contains(c)).filter(|part| !part.is_empty())
}
