//! What a service of systemd starts, by the texts of its unit (systemd.service(5), systemd.exec(5)), and whether a line of another file
//! may start a server. Only a server's own program is understood, as packages start it; of all else it is said that it may start one.

use std::collections::BTreeMap;

use hugepage_kernel::host::accounts::Account;

use super::processes::is_postgresql;

/// What gives a service other directories than the host has.
const OTHER_FILES: [&str; 5] = ["RootDirectory", "RootImage", "BindPaths", "BindReadOnlyPaths", "MountImages"];
/// Options that may change the need, with what begins another command or is not known, and those with a data directory.
const DECIDING: [&str; 6] = ["-c", "-B", "-N", "--", ";", "$"];
const DIRECTORY: [&str; 2] = ["--pgdata=", "-D"];
/// The variables that have a data directory, of which packages name none in the command.
const VARIABLES: [&str; 2] = ["PGDATA", "POSTGRES_DATADIR"];
/// The programs that start containers, and what they are told then, if they can be told anything else.
const CONTAINERS: &str = "docker docker-compose podman podman-compose nerdctl ctr crictl apptainer singularity machinectl lxc incus \
                          lxc-start systemd-nspawn";
const CONTAINER_STARTS: &str = "run start up play deploy lxc-start systemd-nspawn";
/// The programs that have the data directory in their configuration, and what pg_ctl does beside a start.
const KEEPERS: &str = "patroni patroni.py stolon-keeper pg_autoctl";
const QUIET: &str = "stop reload status promote logrotate kill init initdb";
/// The accounts of packages, and what runs as these beside a server. What starts a unit or a cluster is listed by itself.
const ACCOUNTS: &str = "postgres pgsql enterprisedb";
const CLIENTS: &str = "pg_basebackup pg_dump pg_dumpall pg_receivewal psql";
const OTHERS: &str = "pg_ctlcluster pgagent pgbackrest pgbouncer pgpool service systemctl";
/// What is said of what is not understood. If one of the last two runs, and no server in it, it runs something else.
pub(super) const NOT_READ: &str = "it starts a server in a way that is not read";
pub(super) const IN_CONTAINER: &str = "it starts a container, whose server counts only while it runs";
pub(super) const NOT_KNOWN: &str = "whether it starts a server is not known";

/// What a service sets and runs.
#[derive(Default)]
pub(super) struct Service {
    environment: BTreeMap<String, String>,
    files: Vec<String>,
    /// The words of each command, with its setting.
    commands: Vec<(String, Vec<String>)>,
    user: String,
    is_oneshot: bool,
    remains: bool,
    /// What gives it other files than the host's.
    other_files: Option<String>,
}

impl Service {
    /// With the text of its unit and its drop-ins, in which each setting has a line.
    pub(super) fn new(name: &str, text: &str) -> Self {
        let (mut service, mut section) = (Self::default(), String::new());
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
            section = if line.starts_with('[') { line.to_owned() } else { section };
            let Some((key, value)) = line.split_once('=').filter(|_| section == "[Service]") else { continue };
            // A command may have signs in front.
            let value = value.trim().trim_start_matches(['-', '@', ':', '+', '!']);
            let words = words(&specified(value, name));
            // A value without a word takes back what was set before.
            match (key.trim(), words.is_empty()) {
                ("Type", false) => service.is_oneshot = words[0] == "oneshot",
                ("RemainAfterExit", false) => service.remains = ["yes", "true", "on", "1"].contains(&&*words[0]),
                ("User", _) => service.user = words.join(" "),
                (key, false) if OTHER_FILES.contains(&key) => service.other_files = Some(format!("{key}=")),
                ("Environment", true) => service.environment.clear(),
                ("Environment", false) => {
                    // A quote that is left belongs to a value with blanks, which is not understood with it.
                    let pair = |(name, value): (&str, &str)| match name.strip_prefix(['"', '\'']) {
                        Some(name) => (name.to_owned(), format!("\"{value}")),
                        None => (name.to_owned(), value.to_owned()),
                    };
                    service.environment.extend(words.iter().filter_map(|word| word.split_once('=')).map(pair));
                }
                ("EnvironmentFile", true) => service.files.clear(),
                ("EnvironmentFile", false) => service.files.extend(words),
                (key, true) => service.commands.retain(|(of, _)| of != key),
                (key @ ("ExecStart" | "ExecStartPre" | "ExecStartPost"), _) => {
                    service.commands.push((key.to_owned(), words))
                }
                _ => {}
            }
        }
        service
    }

    /// The data directories of the servers that it starts. `accounts`: the host's. `read` reads the files that it names.
    pub(super) fn directories(
        mut self,
        name: &str,
        accounts: &[Account],
        mut read: impl FnMut(&str) -> Result<Option<String>, String>,
    ) -> Vec<Result<String, String>> {
        let files = std::mem::take(&mut self.files);
        let are_read = files.iter().try_for_each(|file| match file.contains(['*', '?', '[', '%']) {
            true => Err(format!("{file} of EnvironmentFile= is a pattern")),
            false => read(file).map(|text| self.set(&text.unwrap_or_default())),
        });
        let stays = !self.is_oneshot || self.remains;
        let account = accounts.iter().find(|account| account.uid.to_string() == self.user);
        let user = account.map_or(&self.user, |account| &account.name);
        let of_command = |(key, command): &(String, Vec<String>)| match &*command[0] {
            // Most of these only prepare.
            _ if key != "ExecStart" && may_start("", &command.join(" "), false).is_none() => None,
            program if is_server(program) || program == "postgres" => {
                Some(are_read.clone().and_then(|()| self.directory(command)))
            }
            _ => Some(Err(may_start(name, &format!("{user} {}", command.join(" ")), stays)?.to_owned())),
        };
        self.commands.iter().filter_map(of_command).collect()
    }

    /// The data directory of the server that a command starts.
    fn directory(&self, command: &[String]) -> Result<String, String> {
        if let Some(key) = &self.other_files {
            return Err(format!("its {key} is not followed"));
        }
        let options: Vec<_> = command.iter().map(|word| self.expanded(word)).collect();
        let attached = |word: &str| Some(DIRECTORY.iter().find_map(|option| word.strip_prefix(option))?.to_owned());
        // Those for the server may be attached to -o.
        let starts = |word: &str| DECIDING.iter().any(|option| word.trim_start_matches("-o").starts_with(option));
        let decides = |word: &str| starts(word) && attached(word).is_none();
        if let Some(option) = options[1..].iter().find(|word| word.split([' ', '"', '\'']).any(decides)) {
            return Err(format!("its unit has {option}, whose effect is not known here"));
        }
        let told = options.iter().enumerate().rev().find_map(|(at, word)| match attached(word)? {
            path if path.is_empty() => options.get(at + 1).cloned(),
            path => Some(path),
        });
        let variable = || VARIABLES.iter().find_map(|name| self.environment.get(*name).cloned());
        let told = told.or_else(variable).ok_or("its unit names no data directory")?;
        // As the file of SUSE's package has it.
        match told.replacen("~postgres/", "/var/lib/pgsql/", 1) {
            path if path.starts_with('/') && !path.contains(['%', '$', '"', '\'', '\\']) => Ok(path),
            path => Err(format!("its data directory {path} is not understood")),
        }
    }

    /// Sets what a file of EnvironmentFile= sets.
    fn set(&mut self, text: &str) {
        let text = text.replace("\\\n", "");
        let lines = text.lines().filter(|line| !line.trim().starts_with(['#', ';']));
        let pair = |(name, value): (&str, &str)| (name.trim().to_owned(), words(value).join(" "));
        self.environment.extend(lines.filter_map(|line| line.split_once('=')).map(pair));
    }

    /// A word of a command line with its variables.
    fn expanded(&self, word: &str) -> String {
        self.environment.iter().fold(word.to_owned(), |word, (name, value)| match word == format!("${name}") {
            true => value.clone(),
            false => word.replace(&format!("${{{name}}}"), value),
        })
    }
}

/// Why a line of the file `name` may start a server; `None` if it does not. `stays`: what it starts is not meant to end.
pub(super) fn may_start(name: &str, line: &str, stays: bool) -> Option<&'static str> {
    let words: Vec<_> = line.split(|c: char| c.is_whitespace() || "'\"`=;&|()".contains(c)).collect();
    let names: Vec<_> = words.iter().map(|word| word.rsplit('/').next().unwrap_or(word)).collect();
    let has = |list: &str| list.split(' ').any(|one| names.contains(&one));
    // Like Docker's own daemon, one that starts all of them repeats what was.
    if has(CONTAINERS) && has(CONTAINER_STARTS) && !has("--all") && (stays || !has("--rm")) {
        return Some(IN_CONTAINER);
    }
    let is_quiet = has(QUIET) && !has("start restart");
    if words.iter().any(|word| is_server(word) && !(is_quiet && word.ends_with("pg_ctl"))) || has(KEEPERS) {
        return Some(NOT_READ);
    }
    let program = words.iter().find(|word| word.starts_with('/')).copied().unwrap_or_default();
    let is_told = has(ACCOUNTS) || tells(name) || tells(program);
    let is_own = |word: &&str| word.contains("start") && word.contains(['/', '.']);
    let is_another = is_quiet || has(CLIENTS) || has(OTHERS) || program.ends_with("/true");
    let may = words.iter().any(is_own) || (stays || has("-D")) && !is_another;
    (is_told && may && ![name, line].concat().contains("exporter")).then_some(NOT_KNOWN)
}

/// Whether the name of a unit or a program is one of PostgreSQL's.
pub(super) fn tells(name: &str) -> bool {
    ["postgres", "pgsql", "edb-"].iter().any(|part| name.contains(part))
}

/// Whether a word is a program that starts a server of a data directory. Without a path `postgres` may be a user.
fn is_server(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    let is_one = is_postgresql(name) || name == "pg_ctl" || name == "postgresql-script";
    is_one && (word == name && name != "postgres" || word.starts_with(['/', '$']))
}

/// A value with what stands for parts of the unit's name; other specifiers are left.
pub(super) fn specified(value: &str, name: &str) -> String {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let (prefix, instance) = stem.split_once('@').unwrap_or((stem, ""));
    let path = instance.replace('-', "/").replace("\\x2d", "-");
    let known = [("%i", instance), ("%I", &path), ("%n", name), ("%N", stem), ("%p", prefix), ("%S", "/var/lib")];
    known.iter().fold(value.to_owned(), |value, (specifier, text)| value.replace(specifier, text))
}

/// The words of a value. Quotes are taken off a whole word, and are left where they are not understood.
fn words(text: &str) -> Vec<String> {
    let unquoted = |word: &str| {
        let inner = ['"', '\''].iter().find_map(|quote| word.strip_prefix(*quote)?.strip_suffix(*quote));
        inner.unwrap_or(word).to_owned()
    };
    text.split_whitespace().map(unquoted).collect()
}
