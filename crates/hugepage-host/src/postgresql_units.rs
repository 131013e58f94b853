//! The systemd services that start PostgreSQL, with their drop-ins (systemd.unit(5), systemd.exec(5)). Only root's files are read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hugepage_kernel::Root;
use hugepage_kernel::notes::Notes;
use hugepage_kernel::source::root_files::{RootEntry, RootFiles};

use super::postgresql_service::{IN_CONTAINER, Service, is_image, tells};

/// Where units are, those first that count before others.
const PLACES: [&str; 10] = [
    "/etc/systemd/system",
    "/etc/systemd/system.attached",
    RUNTIME,
    "/run/systemd/system.attached",
    "/etc/systemd/user",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/run/systemd/generator.late",
];
/// Where units are that do not outlive the boot.
const RUNTIME: &str = "/run/systemd/system";
/// Scripts that start at boot what has no unit, and the directory of cron's files.
const SCRIPTS: [&str; 4] = ["/etc/rc.local", "/etc/rc.d/rc.local", "/etc/crontab", "/etc/anacrontab"];
const CRON: &str = "/etc/cron.d";
/// Where the programs are that supervisord starts.
const OF_SUPERVISORD: [&str; 2] = ["/etc/supervisor/conf.d", "/etc/supervisord.d"];
/// Root's own crontab (crontab(1)), in directories that only root and cron may search.
const OF_ROOT: [&str; 2] = ["/var/spool/cron/crontabs/root", "/var/spool/cron/root"];
/// Where the containers are of which systemd's generator makes units (podman-systemd.unit(5)).
const QUADLETS: [&str; 3] = ["/etc/containers/systemd", "/run/containers/systemd", "/usr/share/containers/systemd"];
/// Packages have some hundreds of units.
const MAX_FILES: usize = 2000;
/// A unit, and a data directory or why it is unknown.
pub(super) type UnitDirectory = (String, Result<String, String>);

/// The path and the text of root's crontab, which only root may read; none where that is not possible.
pub(super) fn crontab_of_root(root: &Root) -> Vec<(&'static str, String)> {
    let mut files = RootFiles::new(root, OF_ROOT.len());
    let text = |path| match files.read(path) {
        Ok(Some(RootEntry::Text(text))) => Some((path, text)),
        _ => None,
    };
    OF_ROOT.into_iter().filter_map(text).collect()
}

/// The services that start PostgreSQL. `enabled` gets the units that others start; `crontab` is [`crontab_of_root`].
pub(super) fn units(
    root: &Root,
    crontab: &[(&str, String)],
    enabled: &mut Vec<String>,
    notes: &mut Notes,
) -> Vec<UnitDirectory> {
    let mut units = Units { files: RootFiles::new(root, MAX_FILES), names: BTreeMap::new() };
    let mut services = BTreeSet::new();
    for place in PLACES {
        let mut list = |path: &str| units.files.names(path).map_err(|why| notes.add(why)).unwrap_or_default();
        let names = list(place);
        let pulls = |name: &&String| [".wants", ".requires", ".upholds"].iter().any(|end| name.ends_with(end));
        let pulled: Vec<_> = names.iter().filter(pulls).flat_map(|name| list(&format!("{place}/{name}"))).collect();
        let all = names.iter().chain(&pulled).map(|name| name.strip_suffix(".d").unwrap_or(name));
        services.extend(all.filter(|name| name.ends_with(".service") && !name.contains("@.")).map(str::to_owned));
        enabled.extend(pulled);
        units.names.insert(place, names);
    }
    let mut found: Vec<UnitDirectory> = Vec::new();
    for name in services {
        match units.texts(&name, &name) {
            Ok(texts) => found.extend(units.directories(&name, &texts)),
            // Of those that may be anything, one is told.
            Err(_) if !tells(&name) && found.iter().any(|(_, one)| one.is_err()) => {}
            Err(why) => found.push((name, Err(format!("whether it starts a server is unknown: {why}")))),
        }
    }
    // As they are after the next boot.
    let of_runtime = units.names.insert(RUNTIME, Vec::new()).unwrap_or_default();
    for name in of_runtime.iter().map(|name| name.strip_suffix(".d").unwrap_or(name)) {
        let texts = units.texts(name, name).unwrap_or_default();
        found.extend(units.directories(name, &texts));
    }
    let crons = units.files.names(CRON).unwrap_or_default().into_iter().map(|name| format!("{CRON}/{name}"));
    found.extend(units.of_scripts(SCRIPTS.map(str::to_owned).into_iter().chain(crons)));
    OF_SUPERVISORD.iter().for_each(|place| found.extend(units.of_supervisord(place)));
    crontab.iter().for_each(|(path, text)| found.extend(units.of_lines(path, text)));
    found.extend(units.of_quadlets());
    found.sort();
    found.dedup();
    found
}

/// The units of a host: its files of root's, and the names in each place.
struct Units<'a> {
    files: RootFiles<'a>,
    names: BTreeMap<&'static str, Vec<String>>,
}

impl Units<'_> {
    /// The data directories of the servers that a unit with these texts starts.
    fn directories(&mut self, name: &str, texts: &[String]) -> Vec<UnitDirectory> {
        let found = Service::new(name, texts).directories(name, |path| self.named(path));
        found.into_iter().map(|one| (name.to_owned(), one)).collect()
    }

    /// What `file` has `user` run, which is judged as in a unit.
    fn of_command(&mut self, file: &str, user: &str, command: &str) -> Vec<UnitDirectory> {
        self.directories(file, &[format!("[Service]\nUser={user}\nExecStart={command}")])
    }

    /// What scripts and crontabs start.
    fn of_scripts(&mut self, scripts: impl Iterator<Item = String>) -> Vec<UnitDirectory> {
        let of_script = |script: String| match self.files.read(&script) {
            Ok(Some(RootEntry::Text(text))) => self.of_lines(&script, &text),
            _ => Vec::new(),
        };
        scripts.flat_map(of_script).collect()
    }

    /// What each line of a script or a crontab starts.
    fn of_lines(&mut self, script: &str, text: &str) -> Vec<UnitDirectory> {
        let mut found = Vec::new();
        for line in text.replace("\\\n", " ").lines().filter(|line| !line.trim().starts_with('#')) {
            let is_time =
                |word: &&str| script.contains("cron") && word.starts_with(|c: char| "*@0123456789".contains(c));
            let mut words = line.split_whitespace().skip_while(is_time).peekable();
            let user = words.next_if(|_| script.starts_with("/etc/cron")).unwrap_or_default();
            let command = words.collect::<Vec<_>>().join(" ").replace([';', '&', '|', '(', ')'], " ");
            found.extend(self.of_command(script, user, &command));
        }
        found
    }

    /// What the programs start that are in a directory of supervisord's.
    fn of_supervisord(&mut self, place: &str) -> Vec<UnitDirectory> {
        let mut found = Vec::new();
        for path in self.files.names(place).unwrap_or_default().iter().map(|name| format!("{place}/{name}")) {
            let Ok(Some(RootEntry::Text(text))) = self.files.read(&path) else { continue };
            let pairs: Vec<_> = text.lines().filter_map(|line| line.split_once('=')).collect();
            let of_key =
                |wanted| pairs.iter().filter(move |(key, _)| key.trim() == wanted).map(|(_, value)| value.trim());
            let user = of_key("user").next().unwrap_or_default();
            of_key("command").for_each(|command| found.extend(self.of_command(&path, user, command)));
        }
        found
    }

    /// The containers of which systemd's generator makes units.
    fn of_quadlets(&mut self) -> Vec<UnitDirectory> {
        let is_of_image = |line: &str| {
            line.split_once('=')
                .is_some_and(|(key, value)| ["Image", "Yaml"].contains(&key.trim()) && is_image(value.trim()))
        };
        let (mut places, mut found) = (Vec::from(QUADLETS.map(str::to_owned)), Vec::new());
        while let Some(place) = places.pop() {
            for name in self.files.names(&place).unwrap_or_default() {
                let unit = format!("{}.service", name.split('.').next().unwrap_or_default());
                match self.files.read(&format!("{place}/{name}")) {
                    Ok(Some(RootEntry::Directory)) => places.push(format!("{place}/{name}")),
                    Ok(Some(RootEntry::Text(text))) if !text.lines().any(is_of_image) => {}
                    Ok(_) => found.push((unit, Err(IN_CONTAINER.to_owned()))),
                    Err(why) => found.push((unit, Err(why))),
                }
            }
        }
        found
    }

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
                Some(RootEntry::Link(target)) if part == path => {
                    let other = target.rsplit('/').next().unwrap_or_default();
                    if other != file && PLACES.iter().any(|place| self.has(place, other)) {
                        return self.texts(name, other);
                    }
                    texts.push(self.named(&target)?.unwrap_or_default());
                }
                _ => return Err(format!("{part} is not a regular file")),
            }
        }
        let is_masked = texts.first().is_none_or(String::is_empty);
        Ok(if is_masked { Vec::new() } else { texts })
    }

    /// The text of a file that a unit names; `None` if it is not there.
    fn named(&mut self, path: &str) -> Result<Option<String>, String> {
        for directory in Path::new(path).ancestors().skip(1).filter_map(Path::to_str) {
            self.files.names(directory)?;
        }
        match self.files.read(path)? {
            Some(RootEntry::Text(text)) => Ok(Some(text)),
            None => Ok(None),
            Some(_) => Err(format!("{path} is not a regular file")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

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
            let root = Root::at(self.0.path());
            let units = units(&root, &crontab_of_root(&root), &mut Vec::new(), &mut notes).into_iter();
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
        // And what the next boot has, without /run.
        assert_eq!(host.units(), ["postgresql-15.service /data/pg15", "postgresql-15.service /data/z z"]);
        host.write("etc/systemd/system/postgresql-.service.d/zzz.conf", "[Service]\nEnvironment=PGDATA=/srv/%p/%N\n");
        assert_eq!(host.units(), ["postgresql-15.service /srv/postgresql-15/postgresql-15"]);
        // Another section, a comment, another file.
        host.write("etc/systemd/system/postgresql-15.service.d/zzzz.conf", "[Unit]\nEnvironment=PGDATA=/no\n");
        host.write("etc/systemd/system/postgresql-15.service.d/zzzz.txt", "[Service]\nEnvironment=PGDATA=/no\n");
        assert_eq!(host.units(), ["postgresql-15.service /srv/postgresql-15/postgresql-15"]);
        host.link("etc/systemd/system/postgresql-15.service", "/dev/null");
        assert_eq!(host.units(), [""; 0], "a unit that is masked does not start");
        let host = Host::new(&[(VENDOR, RED_HAT)]);
        host.link("run/systemd/system/postgresql-15.service", "/dev/null");
        assert_eq!(host.units(), ["postgresql-15.service /var/lib/pgsql/15/data/"], "masked until the next boot");
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
            ("db.service", "ExecStart=/usr/bin/postgres -D /srv/shared_db/huge_1\n", "/srv/shared_db/huge_1"),
            ("db.service", "ExecStart=numactl -N 0 /usr/bin/postgres -D /srv/o\n", "/srv/o"),
            ("db.service", "ExecStart=${PGBIN}/postgres -D /srv/l\n", "/srv/l"),
            ("db.service", "ExecStart=/bin/true\nExecStartPost=/opt/pg_ctl start -D /srv/m\n", "/srv/m"),
            ("db.service", "ExecStartPre=/usr/bin/install -D a b\nExecStart=postgres -D /srv/n\n", "/srv/n"),
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
            (
                "Environment=\"OPTS=-c huge_pages=on\"\nExecStart=/usr/bin/postgres -D /data $OPTS\n",
                "its unit has -c huge_pages=on, whose effect is not known here",
            ),
            (
                "ExecStart=/opt/pg_ctl start -D /data -o '-B 10000'\n",
                "its unit has -B 10000, whose effect is not known here",
            ),
            (
                "ExecStart=/usr/bin/postgres -D /data --config-file=/etc/pg.conf\n",
                "its unit has --config-file=/etc/pg.conf, whose effect is not known here",
            ),
            ("ExecStart=/usr/sbin/chroot /srv /usr/bin/postgres -D /data\n", "its chroot is not followed"),
            ("User=postgres\nExecStart=/opt/run.sh -D /data\n", "the program of its ExecStart= is not known"),
            ("User=postgres\nExecStart=/opt/start.sh\n", "the program of its ExecStart= is not known"),
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
                "ExecStart=/usr/bin/podman run -v pg:/var/lib/postgresql/data docker.io/library/postgres:17\n",
                "it starts a container, whose server counts only while it runs",
            ),
            (
                "ExecStart=/usr/bin/postgres -D /data -c shared_buffers=8GB\n",
                "its unit has shared_buffers=8GB, whose effect is not known here",
            ),
            ("RootDirectory=/srv\nExecStart=/usr/bin/postgres -D /data\n", "its RootDirectory= is not followed"),
            ("ExecStart=/usr/bin/postgres -D /data\nBindPaths=/a:/data\n", "its BindPaths= is not followed"),
            ("ExecStart=/opt/start_postgres.sh\n", "the program of its ExecStart= is not known"),
            ("Type=notify\nExecStart=/opt/own-postgres\n", "the program of its ExecStart= is not known"),
            (
                "EnvironmentFile=/etc/db/*.env\nExecStart=/usr/bin/postgres\n",
                "/etc/db/*.env of EnvironmentFile= is a pattern",
            ),
            ("EnvironmentFile=/etc/link\nExecStart=/usr/bin/postgres\n", "/etc/link is not a regular file"),
        ] {
            let host = Host::new(&[("etc/systemd/system/db.service", &format!("[Service]\n{text}"))]);
            host.link("etc/link", "/etc/other");
            assert_eq!(host.units(), [format!("db.service: {why}")], "{text}");
        }
        for text in [
            "ExecStart=/usr/bin/postgres_exporter -D /x\n",
            "Type=notify\nUser=postgres\nExecStart=/usr/sbin/pgbouncer -q /etc/pgbouncer.ini\n",
            "User=postgres\nExecStart=/usr/bin/pg_receivewal -D /x\n",
            "ExecStart=/usr/bin/podman run /x postgres-exporter:17\n",
            "ExecStart=/usr/bin/docker exec db pg_dump -U postgres\n",
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
    }

    #[test]
    fn units_whose_name_does_not_tell() {
        let unit = "[Service]\nExecStart=/usr/bin/postgres -D /srv/a\n";
        let host = Host::new(&[("opt/own/db.service", unit)]);
        host.link("etc/systemd/system/db.service", "/opt/own/db.service");
        assert_eq!(host.units(), ["db.service /srv/a"], "linked");
        let path = host.0.path().join("opt/own/db.service");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(
            host.units()[0].starts_with("db.service: whether it starts a server is unknown: "),
            "{:?}",
            host.units()
        );
        fs::remove_file(path).unwrap();
        assert_eq!(host.units(), [""; 0], "there is none");
        assert_eq!(Host::new(&[("usr/lib/systemd/system/db.service", unit)]).units(), ["db.service /srv/a"]);
        let rc = "#!/bin/sh\n# pg_ctl -D /no start\nsu - postgres -c 'pg_ctl -D /srv/b start'\n";
        assert_eq!(Host::new(&[("etc/rc.local", rc)]).units(), ["/etc/rc.local /srv/b"]);
        let many = Host::new(&[]);
        (0..2010).for_each(|number| many.write(&format!("etc/systemd/system/{number}.service"), "[Service]\n"));
        assert_eq!(many.units().len(), 1, "{:?}", many.units());
    }

    #[test]
    fn crontabs_and_scripts() {
        for (path, line, found) in [
            ("etc/cron.d/pg", "@reboot\tpostgres /opt/pg_ctl -D /srv/a start\n", "/etc/cron.d/pg /srv/a"),
            (
                "etc/cron.d/pg",
                "*/5 * * * *  postgres  /opt/pg_ctl -D /srv/a status || /opt/pg_ctl -D /srv/a start\n",
                "/etc/cron.d/pg /srv/a",
            ),
            ("etc/crontab", "@reboot postgres PGDATA=/srv/b pg_ctl start\n", "/etc/crontab /srv/b"),
            (
                "etc/crontab",
                "@reboot postgres /home/postgres/start_db.sh\n",
                "/etc/crontab: the program of its ExecStart= is not known",
            ),
            (
                "var/spool/cron/crontabs/root",
                "@reboot su - postgres -c '/opt/pg_ctl -D /srv/f start'\n",
                "/var/spool/cron/crontabs/root /srv/f",
            ),
            ("var/spool/cron/root", "0 4 * * * /opt/backup /srv/f\n", ""),
            (
                "etc/supervisor/conf.d/pg.conf",
                "[program:postgres]\ncommand=/usr/lib/postgresql/15/bin/postgres -D /srv/g\nuser=postgres\n",
                "/etc/supervisor/conf.d/pg.conf /srv/g",
            ),
            (
                "etc/supervisord.d/pg.ini",
                "[program:pg]\nuser = postgres\ncommand = /opt/run.sh -D /srv/g\n",
                "/etc/supervisord.d/pg.ini: the program of its ExecStart= is not known",
            ),
            ("etc/supervisord.d/web.ini", "[program:web]\nuser=www\ncommand=/opt/web --port 5\n", ""),
            ("etc/anacrontab", "1 5 db su - postgres -c 'pg_ctl -D /srv/c start'\n", "/etc/anacrontab /srv/c"),
            (
                "etc/rc.local",
                "if [ -x /opt/pg_ctl ]; then sudo -u postgres /opt/pg_ctl -D /srv/d; fi\n",
                "/etc/rc.local /srv/d",
            ),
            ("etc/rc.local", "su - postgres -c \\\n 'pg_ctl -D /srv/e start'\n", "/etc/rc.local /srv/e"),
            (
                "etc/rc.local",
                "su - postgres -c /home/postgres/start.sh &\n",
                "/etc/rc.local: the program of its ExecStart= is not known",
            ),
            (
                "etc/rc.local",
                "/opt/postgres/start_db.sh &\n",
                "/etc/rc.local: the program of its ExecStart= is not known",
            ),
            ("etc/rc.local", "chown postgres /run/pg\n/opt/start_firewall\nsystemctl start postgresql\n", ""),
            (
                "etc/cron.d/pg",
                "0 3 * * * postgres /usr/bin/pg_dump -f /a db\n0 4 * * * postgres pg_basebackup -D /b\n",
                "",
            ),
        ] {
            let found: Vec<_> = Some(found).filter(|found| !found.is_empty()).into_iter().collect();
            assert_eq!(Host::new(&[(path, line)]).units(), found, "{line}");
        }
    }

    #[test]
    fn quadlets_before_the_generator_has_run() {
        let image = "[Container]\nImage = quay.io/sclorg/postgresql-16-c9s\n";
        let found = ["db.service: it starts a container, whose server counts only while it runs"];
        for path in ["etc/containers/systemd/db.container", "usr/share/containers/systemd/users/1000/db.container"] {
            assert_eq!(Host::new(&[(path, image)]).units(), found, "{path}");
        }
        assert_eq!(Host::new(&[("etc/containers/systemd/db.kube", "[Kube]\nYaml=postgres.yaml\n")]).units(), found);
        for other in ["[Unit]\nAfter=postgres.service\n[Container]\nImage=nginx\n", "Image=postgres-exporter\n"] {
            assert_eq!(Host::new(&[("etc/containers/systemd/db.container", other)]).units(), [""; 0], "{other}");
        }
    }
}
