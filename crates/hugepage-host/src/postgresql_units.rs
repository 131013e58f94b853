//! The systemd services that start PostgreSQL, with their drop-ins (systemd.unit(5), systemd.exec(5)). Only root's files are read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hugepage_kernel::Root;
use hugepage_kernel::notes::Notes;
use hugepage_kernel::source::root_files::{RootEntry, RootFiles};

use super::server_names::is_postgresql;

/// Where units are, those first that count before others.
const PLACES: [&str; 7] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/run/systemd/generator.late",
];
/// The variables that have a data directory, and where it is below their value.
const VARIABLES: [(&str, &str); 3] = [("PGDATA", ""), ("PGROOT", "/data"), ("POSTGRES_DATADIR", "")];

/// A unit, and a data directory or why it is unknown.
pub(super) type UnitDirectory = (String, Result<String, String>);

/// The services that start PostgreSQL. Of the units of packages that nobody has enabled or changed, only those count whose name
/// tells. `enabled` gets the units that others start.
pub(super) fn units(root: &Root, enabled: &mut Vec<String>, notes: &mut Notes) -> Vec<UnitDirectory> {
    let mut units = Units { files: RootFiles::new(root), names: BTreeMap::new() };
    let mut services = BTreeSet::new();
    for place in PLACES {
        let mut list = |path: &str| units.files.names(path).map_err(|why| notes.add(why)).unwrap_or_default();
        let names = list(place);
        let pulled = names.iter().filter(|name| name.ends_with(".wants") || name.ends_with(".requires"));
        let pulled: Vec<_> = pulled.flat_map(|name| list(&format!("{place}/{name}"))).collect();
        for name in names.iter().chain(&pulled) {
            let name = name.strip_suffix(".d").unwrap_or(name);
            let tells = ["postgres", "pgsql", "edb-", "patroni"].iter().any(|part| name.contains(part));
            let is_own = tells || !place.contains("/lib/") || pulled.iter().any(|pulled| pulled == name);
            // Those whose name tells come first, because the number of files is bounded.
            services.extend((is_own && name.ends_with(".service")).then(|| (!tells, name.to_owned())));
        }
        enabled.extend(pulled);
        units.names.insert(place, names);
    }
    let mut found = Vec::new();
    for (is_silent, name) in services.into_iter().filter(|(_, name)| !name.contains("@.")) {
        match units.texts(&name, &name) {
            Ok(texts) => {
                let directories = Service::new(&name, &texts).directories(&name, &mut units);
                found.extend(directories.into_iter().map(|one| (name.clone(), one)));
            }
            Err(why) => found.extend((!is_silent).then_some((name, Err(why)))),
        }
    }
    found
}

/// The units of a host: its files of root's, and the names in each place.
struct Units<'a> {
    files: RootFiles<'a>,
    names: BTreeMap<&'static str, Vec<String>>,
}

impl Units<'_> {
    fn has(&self, place: &str, name: &str) -> bool {
        self.names[place].iter().any(|found| found == name)
    }

    /// The texts of the unit `name` and of its drop-ins, in the order in which they count; none of a unit that is masked or not there.
    /// `file`: the name of its file, which is another one where it is an alias.
    fn texts(&mut self, name: &str, file: &str) -> Result<Vec<String>, String> {
        let template = file.split_once('@').map(|(prefix, _)| format!("{prefix}@.service"));
        let of_name = |name: &String| Some(format!("{}/{name}", PLACES.iter().find(|place| self.has(place, name))?));
        let Some(path) = of_name(&file.to_owned()).or_else(|| of_name(template.as_ref()?)) else { return Ok(vec![]) };
        let dashes = name.match_indices('-').map(|(at, _)| format!("{}.service", &name[..=at]));
        let all = ["service".to_owned()].into_iter().chain(dashes).chain(template);
        let mut drop_ins = BTreeMap::new();
        for directory in all.chain([file.to_owned(), name.to_owned()]).map(|name| format!("{name}.d")) {
            for place in PLACES.iter().rev().filter(|place| self.has(place, &directory)) {
                let names = self.files.names(&format!("{place}/{directory}"))?.into_iter();
                let names = names.filter(|name| name.ends_with(".conf"));
                drop_ins.extend(names.map(|name| (name.clone(), format!("{place}/{directory}/{name}"))));
            }
        }
        let mut texts = Vec::new();
        for part in [path.clone()].into_iter().chain(drop_ins.into_values()) {
            match self.files.read(&part)? {
                Some(RootEntry::Text(text)) => texts.push(text),
                Some(RootEntry::Link(target)) if target == "/dev/null" => texts.push(String::new()),
                Some(RootEntry::Link(target)) if part == path && target.rsplit('/').next() != Some(file) => {
                    return self.texts(name, target.rsplit('/').next().unwrap_or_default());
                }
                _ => return Err(format!("{part} is not a regular file")),
            }
        }
        let is_masked = texts.first().is_none_or(String::is_empty);
        Ok(if is_masked { Vec::new() } else { texts })
    }

    /// What the file `path` of EnvironmentFile= sets; nothing if it is not there.
    fn environment(&mut self, path: &str) -> Result<Vec<(String, String)>, String> {
        if path.contains(['*', '?', '[', '%']) {
            return Err(format!("{path} of EnvironmentFile= is a pattern"));
        }
        for directory in Path::new(path).ancestors().skip(1).filter_map(Path::to_str) {
            self.files.names(directory)?;
        }
        let text = match self.files.read(path)? {
            Some(RootEntry::Text(text)) => text,
            None => return Ok(Vec::new()),
            Some(_) => return Err(format!("{path} of EnvironmentFile= is not a regular file")),
        };
        let lines = text.lines().filter(|line| !line.trim().starts_with(['#', ';']));
        let pair = |(name, value): (&str, &str)| (name.trim().to_owned(), words(value).join(" "));
        Ok(lines.filter_map(|line| line.split_once('=')).map(pair).collect())
    }
}

/// What a service sets and runs.
#[derive(Default)]
struct Service {
    environment: BTreeMap<String, String>,
    files: Vec<String>,
    command: Vec<String>,
    is_forking: bool,
}

impl Service {
    fn new(name: &str, texts: &[String]) -> Self {
        let (mut service, mut section) = (Self::default(), String::new());
        let texts = texts.iter().map(|text| text.replace("\\\n", " ") + "\n").collect::<String>();
        for line in texts.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
            section = if line.starts_with('[') { line.to_owned() } else { section };
            let Some((key, value)) = line.split_once('=').filter(|_| section == "[Service]") else { continue };
            let words = words(&specified(value, name));
            // A value without a word takes back what was set before.
            match (key.trim(), words.is_empty()) {
                ("Type", _) => service.is_forking = words == ["forking"],
                ("Environment", true) => service.environment.clear(),
                ("Environment", false) => service.set(&words),
                ("EnvironmentFile", true) => service.files.clear(),
                ("EnvironmentFile", false) => service.files.extend(words),
                ("ExecStart", true) => service.command.clear(),
                ("ExecStart", false) => service.command.extend(words),
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
        let is_of_shell =
            |at: usize| at > 0 && self.command[at - 1].starts_with('-') && self.command[at - 1].ends_with('c');
        let parts = self.command.iter().enumerate().map(|(at, word)| match is_of_shell(at) {
            true => words(&word.replace([';', '&', '|', '(', ')'], " ")),
            false => vec![word.clone()],
        });
        parts.flatten().collect()
    }

    /// The data directories of the servers that it starts.
    fn directories(mut self, name: &str, units: &mut Units<'_>) -> Vec<Result<String, String>> {
        let command = self.command();
        let starts: Vec<_> = command.iter().filter(|word| starts_server(word)).collect();
        self.set(&command);
        let variables = VARIABLES.iter();
        if starts.is_empty() && variables.clone().all(|(name, _)| !self.environment.contains_key(*name)) {
            let mut names = command.iter().map(|word| word.rsplit('/').next().unwrap_or(word));
            let is_script =
                self.is_forking && name.contains("postgres") && !names.clone().any(|name| name == "pg_ctlcluster");
            let keeper = names.find(|name| ["patroni", "stolon-keeper", "pg_autoctl"].contains(name));
            let why = keeper.map(|keeper| format!("its data directory is in the configuration of {keeper}"));
            let why = why.or_else(|| is_script.then(|| "the program of its ExecStart= is not known".to_owned()));
            return why.into_iter().map(Err).collect();
        }
        for file in &self.files {
            match units.environment(file.trim_start_matches('-')) {
                Ok(found) => self.environment.extend(found),
                Err(why) => return vec![Err(why)],
            }
        }
        let told = command.iter().enumerate().filter_map(|(at, word)| {
            let is_option =
                |option: &String| !option.starts_with("--") && option.starts_with('-') && option.ends_with('D');
            let attached = ["--pgdata=", "--data-directory=", "-D"].iter().find_map(|option| word.strip_prefix(option));
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
        let untold = is_untold.then(|| Err("its unit names no data directory".to_owned()));
        told.into_iter().map(understood).chain(untold).collect()
    }

    /// A word of a command line with its variables.
    fn expanded(&self, word: &str) -> String {
        self.environment.iter().fold(word.to_owned(), |word, (name, value)| match word == format!("${name}") {
            true => value.clone(),
            false => word.replace(&format!("${{{name}}}"), value),
        })
    }
}

/// Whether a word is a program that starts a server of a data directory.
fn starts_server(word: &str) -> bool {
    let program = word.trim_start_matches(['-', '@', ':', '+', '!']);
    let name = program.rsplit('/').next().unwrap_or(program);
    let is_one = is_postgresql(name) || name == "pg_ctl" || name == "postgresql-script";
    is_one && (program == name || program.starts_with('/'))
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    struct Host(tempfile::TempDir);

    impl Host {
        fn new(files: &[(&str, &str)]) -> Self {
            let host = Self(tempfile::tempdir().unwrap());
            fs::create_dir_all(host.0.path().join("etc")).unwrap();
            files.iter().for_each(|(path, text)| host.write(path, text));
            host
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn link(&self, path: &str, target: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(target, path).unwrap();
        }

        /// `UNIT DIRECTORY`, or `UNIT: WHY`.
        fn units(&self) -> Vec<String> {
            let mut notes = Notes::default();
            let units = units(&Root::at(self.0.path()), &mut Vec::new(), &mut notes).into_iter();
            let units = units.map(|(name, found)| match found {
                Ok(directory) => format!("{name} {directory}"),
                Err(why) => format!("{name}: {why}"),
            });
            units.chain(notes.into_vec()).collect()
        }
    }

    const RED_HAT: &str = "[Unit]\nAfter=network.target\n[Service]\nType=notify\nEnvironment=PGDATA=/var/lib/pgsql/15/data/\n\
                           ExecStart=/usr/pgsql-15/bin/postgres -D ${PGDATA}\n[Install]\nWantedBy=multi-user.target\n";
    const VENDOR: &str = "usr/lib/systemd/system/postgresql-15.service";
    const DROP_IN: &str = "etc/systemd/system/postgresql-15.service.d/override.conf";

    #[test]
    fn a_unit_with_its_drop_ins() {
        let host = Host::new(&[(VENDOR, RED_HAT)]);
        assert_eq!(host.units(), ["postgresql-15.service /var/lib/pgsql/15/data/"]);
        host.write(DROP_IN, "[Service]\nEnvironment=PGDATA=/data/pg15\n");
        assert_eq!(host.units(), ["postgresql-15.service /data/pg15"]);
        // Of several the last name counts, wherever it is; of one name the first place.
        host.write(
            "run/systemd/system/postgresql-15.service.d/zz.conf",
            "[Service]\nEnvironment=\"PGDATA=/data/z z\"\n",
        );
        host.write("run/systemd/system/postgresql-15.service.d/override.conf", "[Service]\nEnvironment=PGDATA=/no\n");
        assert_eq!(host.units(), ["postgresql-15.service /data/z z"]);
        host.write("etc/systemd/system/postgresql-.service.d/zzz.conf", "[Service]\nEnvironment=PGDATA=/srv/%p/%N\n");
        assert_eq!(host.units(), ["postgresql-15.service /srv/postgresql-15/postgresql-15"]);
        // Another section, a comment, another file.
        host.write("etc/systemd/system/postgresql-15.service.d/zzzz.conf", "[Unit]\nEnvironment=PGDATA=/no\n");
        host.write("etc/systemd/system/postgresql-15.service.d/zzzz.txt", "[Service]\nEnvironment=PGDATA=/no\n");
        assert_eq!(host.units(), ["postgresql-15.service /srv/postgresql-15/postgresql-15"]);
        host.link("etc/systemd/system/postgresql-15.service", "/dev/null");
        assert_eq!(host.units(), [""; 0], "a unit that is masked does not start");
    }

    #[test]
    fn where_units_name_the_directory() {
        for (name, text, found) in [
            (
                "db.service",
                "ExecStart=/opt/pg/bin/pg_ctl start -w -t 300 -D \"/opt/pg/data\" -l /opt/log\n",
                "/opt/pg/data",
            ),
            ("db.service", "ExecStart=/usr/bin/postgres -c port=1 \\\n  --pgdata=/srv/a\n", "/srv/a"),
            ("db.service", "ExecStart=/bin/su - postgres -c '/opt/pg/bin/pg_ctl start -D /srv/b'\n", "/srv/b"),
            ("db.service", "ExecStart=postgres -D /srv/f\n", "/srv/f"),
            ("db.service", "ExecStart=/bin/sh -ec 'cd /; exec postgres -D /srv/g; true'\n", "/srv/g"),
            ("db.service", "ExecStart=/bin/su - postgres -c 'PGDATA=/srv/h pg_ctl start'\n", "/srv/h"),
            ("db.service", "ExecStart=/opt/pg_ctl -wD \"/srv/i i\" start\n", "/srv/i i"),
            (
                "db.service",
                "ExecStart=numactl --interleave=all /usr/bin/postgres -D /var/lib/postgres\n",
                "/var/lib/postgres",
            ),
            ("db.service", "ExecStart=@/usr/bin/postgres postgres -D /srv/k\n", "/srv/k"),
            ("db.service", "ExecStart=/usr/bin/true\nExecStart=\nExecStart=!/usr/bin/postmaster -D/srv/c\n", "/srv/c"),
            (
                "db.service",
                "Environment=PGROOT=/var/lib/postgres\nExecStart=/usr/bin/postgres -D ${PGROOT}/data\n",
                "/var/lib/postgres/data",
            ),
            ("db.service", "Environment=PGROOT=/srv/d\nExecStart=/usr/libexec/start\n", "/srv/d/data"),
            (
                "edb-as-15.service",
                "Environment=PGDATA=/var/lib/edb/as15/data\nExecStart=/usr/edb/as15/bin/edb-postmaster -D ${PGDATA}\n",
                "/var/lib/edb/as15/data",
            ),
            ("pg@a-b.service", "ExecStart=/usr/bin/postgres -D /srv/%i%I\n", "/srv/a-ba/b"),
            (
                "db.service",
                "EnvironmentFile=-/etc/sysconfig/db\nEnvironment=PGDATA=/no\nExecStart=/usr/bin/postgres -D $PGDATA\n",
                "/srv/of file",
            ),
            (
                "db.service",
                "EnvironmentFile=-/etc/sysconfig/none\nEnvironment=PGDATA=/srv/e\nExecStart=/usr/bin/postgres\n",
                "/srv/e",
            ),
            (
                "postgresql.service",
                "EnvironmentFile=-/etc/sysconfig/db\nExecStart=/usr/share/postgresql/postgresql-script start\n",
                "/srv/of file",
            ),
            (
                "postgresql.service",
                "Environment=POSTGRES_DATADIR=~postgres/data\nExecStart=/usr/share/postgresql/postgresql-script start\n",
                "/var/lib/pgsql/data",
            ),
        ] {
            let host = Host::new(&[("etc/sysconfig/db", "# PGDATA=/no\nPGDATA='/srv/of file'\n")]);
            host.write(&format!("etc/systemd/system/{name}"), &format!("[Service]\n{text}"));
            assert_eq!(host.units(), [format!("{name} {found}")], "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for (text, why) in [
            ("ExecStart=/usr/bin/postgres\n", "its unit names no data directory"),
            ("ExecStart=/usr/share/postgresql/postgresql-script start\n", "its unit names no data directory"),
            ("ExecStart=/usr/bin/postgres -D %h/data\n", "its data directory %h/data is not understood"),
            ("ExecStart=/usr/bin/postgres -D ${X}\n", "its data directory ${X} is not understood"),
            ("Environment=PGDATA=data\nExecStart=/usr/bin/postgres\n", "its data directory data is not understood"),
            ("ExecStart=/usr/bin/patroni /etc/patroni.yml\n", "its data directory is in the configuration of patroni"),
            (
                "ExecStart=/usr/bin/python3 /opt/bin/patroni x\n",
                "its data directory is in the configuration of patroni",
            ),
            (
                "ExecStart=/bin/sh -c 'exec /opt/bin/patroni x'\n",
                "its data directory is in the configuration of patroni",
            ),
            (
                "EnvironmentFile=/etc/db/*.env\nExecStart=/usr/bin/postgres\n",
                "/etc/db/*.env of EnvironmentFile= is a pattern",
            ),
            (
                "EnvironmentFile=/etc/link\nExecStart=/usr/bin/postgres\n",
                "/etc/link of EnvironmentFile= is not a regular file",
            ),
        ] {
            let host = Host::new(&[("etc/systemd/system/db.service", &format!("[Service]\n{text}"))]);
            host.link("etc/link", "/etc/other");
            assert_eq!(host.units(), [format!("db.service: {why}")], "{text}");
        }
        for text in [
            "ExecStart=/usr/bin/postgres_exporter -D /x\n",
            "ExecStart=/usr/bin/podman run /x postgres:17\n",
            "ExecStart=/bin/su postgres -c /usr/bin/exporter\n",
            "Type=forking\nExecStart=/opt/start.sh\n",
            "",
        ] {
            let host = Host::new(&[("etc/systemd/system/db.service", &format!("[Service]\n{text}"))]);
            assert_eq!(host.units(), [""; 0], "{text}");
        }
    }

    #[test]
    fn several_servers_and_scripts() {
        let two = "ExecStart=/opt/pg_ctl start -D /a\nExecStart=/opt/pg_ctl start -D /b\n";
        let host = Host::new(&[("etc/systemd/system/db.service", &format!("[Service]\n{two}"))]);
        assert_eq!(host.units(), ["db.service /a", "db.service /b"]);
        let script = "[Service]\nType=forking\nExecStart=/etc/init.d/postgresql start\n";
        let host = Host::new(&[("run/systemd/generator.late/postgresql.service", script)]);
        assert_eq!(host.units(), ["postgresql.service: the program of its ExecStart= is not known"]);
        host.write(
            "etc/systemd/system/postgresql@15-a.service",
            "[Service]\nType=forking\nExecStart=-/usr/bin/pg_ctlcluster --skip-systemctl-redirect %i start\n",
        );
        assert_eq!(host.units().len(), 1, "Debian's clusters are in /etc/postgresql");
    }

    #[test]
    fn instances_of_templates() {
        let host =
            Host::new(&[("usr/lib/systemd/system/pg@.service", "[Service]\nExecStart=/usr/bin/postgres -D /srv/%i\n")]);
        assert_eq!(host.units(), [""; 0], "nobody has enabled one");
        host.link("etc/systemd/system/multi-user.target.wants/pg@a.service", "/usr/lib/systemd/system/pg@.service");
        host.write(
            "etc/systemd/system/pg@b.service.d/own.conf",
            "[Service]\nExecStart=\nExecStart=/usr/bin/postgres -D /b/%i\n",
        );
        host.link("etc/systemd/system/pg@c.service", "/usr/lib/systemd/system/pg@.service");
        assert_eq!(host.units(), ["pg@a.service /srv/a", "pg@b.service /b/b", "pg@c.service /srv/c"]);
        host.link("etc/systemd/system/postgresql.service", "/opt/own/postgresql.service");
        assert!(host.units()[0].contains("is not a regular file"), "{:?}", host.units());
    }
}
