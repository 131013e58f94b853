//! What a systemd service of PostgreSQL starts, by the texts of its unit (systemd.service(5), systemd.exec(5)).

use std::collections::BTreeMap;

use super::server_names::is_postgresql;

/// The programs that start a container, what images of PostgreSQL have in their names, and what is said of both.
const CONTAINERS: [&str; 5] = ["docker", "podman", "nerdctl", "apptainer", "docker-compose"];
const IMAGES: [&str; 7] = ["postgres", "postgis", "timescale", "pgvector", "spilo", "patroni", "citus"];
/// The programs that have the data directory in their configuration, and those that start what is listed by itself.
const KEEPERS: [&str; 4] = ["patroni", "patroni.py", "stolon-keeper", "pg_autoctl"];
const STARTERS: [&str; 4] = ["pg_ctlcluster", "true", "systemctl", "service"];
pub(super) const IN_CONTAINER: &str = "it starts a container, whose server counts only while it runs";
/// What gives a service other directories than the host has.
const OTHER_FILES: [&str; 5] = ["RootDirectory", "RootImage", "BindPaths", "BindReadOnlyPaths", "MountImages"];
/// What options have in their names that change the need.
const OPTIONS: [&str; 4] = ["huge_", "shared_", "max_connections", "config_file"];
const ATTACHED: [&str; 4] = ["--pgdata=", "--data-directory=", "data_directory=", "-D"];
/// The variables that have a data directory, and where it is below their value.
const VARIABLES: [(&str, &str); 3] = [("PGDATA", ""), ("PGROOT", "/data"), ("POSTGRES_DATADIR", "")];

/// What a service sets and runs.
#[derive(Default)]
pub(super) struct Service {
    environment: BTreeMap<String, String>,
    files: Vec<String>,
    /// The command lines, by their settings in the order in which they run.
    commands: BTreeMap<String, Vec<String>>,
    /// Whether it is one that starts something that stays, and whether the user of PostgreSQL runs it.
    is_starter: bool,
    is_of_postgres: bool,
    /// What gives it other files than the host's.
    other_files: Option<String>,
}

impl Service {
    /// With the texts of its unit and its drop-ins.
    pub(super) fn new(name: &str, texts: &[String]) -> Self {
        let (mut service, mut section) = (Self::default(), String::new());
        let texts = texts.iter().map(|text| text.replace("\\\n", " ") + "\n").collect::<String>();
        for line in texts.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
            section = if line.starts_with('[') { line.to_owned() } else { section };
            let Some((key, value)) = line.split_once('=').filter(|_| section == "[Service]") else { continue };
            let words = words(&specified(value, name));
            // A value without a word takes back what was set before.
            match (key.trim(), words.is_empty()) {
                ("Type", false) => service.is_starter |= ["forking", "notify"].contains(&&*words[0]),
                ("User", _) => service.is_of_postgres = words.iter().any(|word| word == "postgres"),
                ("RemainAfterExit", false) => service.is_starter |= ["yes", "true", "on", "1"].contains(&&*words[0]),
                (key, false) if OTHER_FILES.contains(&key) => service.other_files = Some(format!("{key}=")),
                ("Environment", true) => service.environment.clear(),
                ("Environment", false) => service.set(&words),
                ("EnvironmentFile", true) => service.files.clear(),
                ("EnvironmentFile", false) => service.files.extend(words),
                (key, true) => drop(service.commands.remove(key)),
                ("ExecStart", _) => service.commands.entry(key.to_owned()).or_default().extend(words),
                // Most of these only prepare.
                ("ExecStartPre" | "ExecStartPost", _) if words.iter().any(|word| starts_server(word)) => {
                    service.commands.entry(key.to_owned()).or_default().extend(words);
                }
                _ => {}
            }
        }
        service
    }

    /// Sets the variables of these words.
    fn set(&mut self, words: &[String]) {
        let pairs = words.iter().filter_map(|word| word.split_once('='));
        self.environment.extend(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    /// The words of its command lines. A shell has its commands in one word, behind `-c`.
    fn command(&self) -> Vec<String> {
        let all: Vec<_> = self.commands.values().flatten().collect();
        let is_of_shell = |at: usize| at > 0 && all[at - 1].starts_with('-') && all[at - 1].ends_with('c');
        let parts = all.iter().enumerate().map(|(at, word)| match is_of_shell(at) {
            true => words(&word.replace([';', '&', '|', '(', ')'], " ")),
            false => vec![(*word).clone()],
        });
        parts.flatten().collect()
    }

    /// The data directories of the servers that it starts. `read` reads the files that it names.
    pub(super) fn directories(
        mut self,
        name: &str,
        read: impl FnMut(&str) -> Result<Option<String>, String>,
    ) -> Vec<Result<String, String>> {
        let command = self.command();
        let names: Vec<_> = command.iter().map(|word| word.rsplit('/').next().unwrap_or(word)).collect();
        let has = |words: &[&str]| names.iter().any(|name| words.contains(name));
        if has(&CONTAINERS) && has(&["run", "start", "up"]) && names.iter().chain([&name]).any(|name| is_image(name)) {
            return vec![Err(IN_CONTAINER.to_owned())];
        }
        let starts: Vec<_> = command.iter().filter(|word| starts_server(word)).collect();
        self.set(&command);
        let variables = VARIABLES.iter();
        // A script or a program of its own, which may start the server that its name, its user or its path tells.
        let program = names.first().copied().unwrap_or_default();
        let is_own = |word: &&str| word.contains("start") && !["start", "restart"].contains(word);
        let is_told = [name, program].into_iter().any(tells);
        let is_of_postgres = self.is_of_postgres || names.contains(&"postgres");
        let is_script = is_told && (self.is_starter || names.contains(&"start")) && !STARTERS.contains(&program)
            || (is_told || is_of_postgres || command.iter().any(|word| tells(word))) && names.iter().any(is_own)
            || is_of_postgres && names.contains(&"-D") && !program.starts_with("pg_");
        let unknown = || "the program of its ExecStart= is not known".to_owned();
        if starts.is_empty() && variables.clone().all(|(name, _)| !self.environment.contains_key(*name)) {
            let keeper = names.iter().find(|name| KEEPERS.contains(name));
            let why = keeper.map(|keeper| format!("its data directory is in the configuration of {keeper}"));
            return why.or_else(|| is_script.then(unknown)).into_iter().map(Err).collect();
        }
        if let Some(key) = self.other_files.take().or_else(|| has(&["chroot", "bwrap"]).then(|| "chroot".to_owned())) {
            return vec![Err(format!("its {key} is not followed"))];
        }
        if let Err(why) = self.read_files(read) {
            return vec![Err(why)];
        }
        if let Some(word) = self.deciding_option(&command) {
            return vec![Err(format!("its unit has {word}, whose effect is not known here"))];
        }
        let told = command.iter().enumerate().filter_map(|(at, word)| {
            let is_option =
                |option: &String| !option.starts_with("--") && option.starts_with('-') && option.ends_with('D');
            let attached = ATTACHED.iter().find_map(|option| word.strip_prefix(option));
            let is_behind = at > 0 && is_option(&command[at - 1]);
            attached.filter(|path| !path.is_empty()).or(is_behind.then_some(word)).map(|path| self.expanded(path))
        });
        let of_variable = |(name, below): &(&str, &str)| Some(format!("{}{below}", self.environment.get(*name)?));
        let mut told: Vec<_> = told.collect();
        if told.is_empty() {
            told.extend(variables.filter_map(of_variable).next());
        }
        // As the file of SUSE's package has it.
        let understood = |path: String| match path.replacen("~postgres/", "/var/lib/pgsql/", 1) {
            path if path.starts_with('/') && !path.contains(['%', '$']) => Ok(path),
            path => Err(format!("its data directory {path} is not understood")),
        };
        // A word without a path may be something else.
        let is_untold = told.is_empty() && starts.iter().any(|word| word.contains('/'));
        let untold = is_untold.then(|| "its unit names no data directory".to_owned());
        let untold = untold.or_else(|| (told.is_empty() && is_script).then(unknown)).map(Err);
        told.into_iter().map(understood).chain(untold).collect()
    }

    /// An option behind the server's program that changes the need.
    fn deciding_option(&self, command: &[String]) -> Option<String> {
        let sets = |word: &str| {
            let name = word.split('/').next().unwrap_or_default().replace('-', "_");
            OPTIONS.iter().any(|part| name.contains(part)) || word.starts_with("-B") || word.starts_with("-N")
        };
        let mut words = command.iter().skip_while(|word| !starts_server(word)).map(|word| self.expanded(word));
        words.find(|word| word.split_whitespace().any(sets))
    }

    /// Sets what the files of EnvironmentFile= set, which need not be there.
    fn read_files(&mut self, mut read: impl FnMut(&str) -> Result<Option<String>, String>) -> Result<(), String> {
        for path in self.files.iter().map(|file| file.trim_start_matches('-')) {
            if path.contains(['*', '?', '[', '%']) {
                return Err(format!("{path} of EnvironmentFile= is a pattern"));
            }
            let text = read(path)?.unwrap_or_default().replace("\\\n", "");
            let lines = text.lines().filter(|line| !line.trim().starts_with(['#', ';']));
            let pair = |(name, value): (&str, &str)| (name.trim().to_owned(), words(value).join(" "));
            self.environment.extend(lines.filter_map(|line| line.split_once('=')).map(pair));
        }
        Ok(())
    }

    /// A word of a command line with its variables.
    fn expanded(&self, word: &str) -> String {
        self.environment.iter().fold(word.to_owned(), |word, (name, value)| match word == format!("${name}") {
            true => value.clone(),
            false => word.replace(&format!("${{{name}}}"), value),
        })
    }
}

/// Whether a word may be the name of an image of PostgreSQL.
pub(super) fn is_image(name: &str) -> bool {
    (IMAGES.iter().any(|part| name.contains(part)) || name.ends_with(".image")) && !name.contains("export")
}

/// Whether the name of a unit or a program is one of PostgreSQL's.
pub(super) fn tells(name: &str) -> bool {
    ["postgres", "pgsql", "edb-"].iter().any(|part| name.contains(part))
}

/// Whether a word is a program that starts a server of a data directory.
fn starts_server(word: &str) -> bool {
    let program = word.trim_start_matches(['-', '@', ':', '+', '!']);
    let name = program.rsplit('/').next().unwrap_or(program);
    let is_one = is_postgresql(name) || name == "pg_ctl" || name == "postgresql-script";
    is_one && (program == name || program.starts_with(['/', '$']))
}

/// A value with what stands for parts of the unit's name; other specifiers are left.
fn specified(value: &str, name: &str) -> String {
    let stem = name.strip_suffix(".service").unwrap_or(name);
    let (prefix, instance) = stem.split_once('@').unwrap_or((stem, ""));
    let path = instance.replace('-', "/").replace("\\x2d", "-");
    let known = [("%i", instance), ("%I", &path), ("%n", name), ("%N", stem), ("%p", prefix), ("%S", "/var/lib")];
    known.iter().fold(value.to_owned(), |value, (specifier, text)| value.replace(specifier, text))
}

/// The words of a value, without quotes.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if open == letter => quote = None,
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (_, '\\') => word.get_or_insert_default().extend(letters.next()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}
