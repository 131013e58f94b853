//! What may start PostgreSQL on a host: systemd's units with their drop-ins (systemd.unit(5)), containers, and scripts. Of units and
//! scripts only root's files are read, and what a file starts is judged by [`Service`] alone.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use hugepage_kernel::host::accounts;
use hugepage_kernel::source::root::if_there;
use hugepage_kernel::source::root_files::{RootEntry, RootFiles};
use hugepage_kernel::{Notes, Root};

use super::postgresql_service::{IN_CONTAINER, Service, may_start, specified, tells};
use crate::readers::{self, Owner};

/// Where units are, those first that count before others at the next boot, which empties the last.
pub(super) const PLACES: [&str; 10] = [
    "/etc/systemd/system.control",
    "/run/systemd/generator.early",
    "/etc/systemd/system",
    "/etc/systemd/system.attached",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    LATE,
    RUNTIME,
];
const RUNTIME: &str = "/run/systemd/system";
/// Units made of the scripts in /etc/init.d of which there is no other unit (systemd-sysv-generator(8)).
const LATE: &str = "/run/systemd/generator.late";
/// Scripts and crontabs, and directories of them, of directories with a script `run`, and of quadlets (podman-systemd.unit(5)).
const SCRIPTS: [&str; 9] = [
    "/etc/init.d /etc/rc.local /etc/rc.d/rc.local /etc/inittab /etc/local.d",
    "/etc/crontab /etc/anacrontab /etc/cron.d /etc/cron.hourly /etc/cron.daily /etc/cron.weekly /etc/cron.monthly",
    "/etc/service /etc/sv /var/service /service /etc/services.d /etc/s6/sv /etc/s6-overlay/s6-rc.d",
    "/etc/supervisord.conf /etc/supervisord.d /etc/supervisord/conf.d",
    "/etc/supervisor/supervisord.conf /etc/supervisor/conf.d /etc/supervisor.d",
    "/etc/monitrc /etc/monit/monitrc /etc/monit.d /etc/monit/conf.d",
    "/etc/cloud/cloud.cfg /etc/cloud/cloud.cfg.d /var/lib/cloud/scripts/per-boot",
    "/etc/NetworkManager/dispatcher.d /etc/network/if-up.d",
    "/etc/containers/systemd /usr/share/containers/systemd",
];
/// Parts of the paths of those of which most lines are no starts, or only tell a service manager of one.
const PASSING: [&str; 3] = ["cron", "/etc/monit", "/cloud/"];
/// Where the crontabs of users are, which are named after them (crontab(1)): only root and cron may look into these.
const CRONTABS: [&str; 3] = ["/var/spool/cron/crontabs", "/var/spool/cron/tabs", "/var/spool/cron"];
/// Packages have some hundreds of units.
const MAX_FILES: usize = 2000;
const MAX_CRONTAB: u64 = 1 << 20;
/// The settings of a unit that name what it starts.
const STARTS: [&str; 8] = ["Wants", "Requires", "BindsTo", "Upholds", "Unit", "Service", "OnFailure", "OnSuccess"];
/// A unit with a data directory, or another file with its text; or why that is unknown.
pub(super) type NamedFile = (String, Result<String, String>);

/// The scripts and crontabs of a host, as far as this process may read them.
pub(super) fn scripts(root: &Root) -> Vec<NamedFile> {
    let (mut files, mut found) = (RootFiles::new(root, MAX_FILES), Vec::new());
    let places: Vec<_> = SCRIPTS.iter().flat_map(|places| places.split(' ')).collect();
    let mut waiting: Vec<_> = places.iter().copied().map(str::to_owned).collect();
    while let Some(path) = waiting.pop() {
        let is_place = places.contains(&&*path);
        let is_one = |name: &&String| is_place || *name == "run" || unit_of_quadlet(name).is_some();
        match files.read(&path) {
            Ok(Some(RootEntry::Text(text))) => found.push((path, Ok(text))),
            Ok(Some(RootEntry::Link(_))) if !is_place => waiting.push(format!("{path}/run")),
            Ok(Some(entry)) => match files.names(&path) {
                Ok(names) => waiting.extend(names.iter().filter(is_one).map(|name| format!("{path}/{name}"))),
                // A link to another place of scripts.
                Err(_) if matches!(entry, RootEntry::Link(_)) => {}
                Err(why) => found.push((path, Err(why))),
            },
            Ok(None) => {}
            Err(why) => found.push((path, Err(why))),
        }
    }
    found.extend(crontabs(root));
    found
}

/// The crontabs of users, each read by its user: root finds them, and has no right to read them. Others may not look for them.
fn crontabs(root: &Root) -> Vec<NamedFile> {
    let (mut paths, mut closed) = (Vec::new(), Vec::new());
    for place in CRONTABS {
        match if_there(root.list(place)) {
            Ok(names) => paths.extend(names.into_iter().flatten().map(|name| format!("{place}/{name}"))),
            Err(error) => closed.push((place.to_owned(), Err(error.to_string()))),
        }
    }
    let file = |path: String| Some((root.find(&path, false).ok().filter(|file| file.metadata.is_file())?, path));
    let found: Vec<_> = paths.into_iter().filter_map(file).collect();
    let owners: Vec<_> = found.iter().map(|(file, _)| Owner::of_account(root, file.metadata.uid())).collect();
    let texts = readers::read_each(&owners, |number| {
        let text = found[number].0.open().and_then(|file| io::read_to_string(file.take(MAX_CRONTAB)));
        text.map_err(|error| format!("it is not read: {error}"))
    });
    let texts = texts.into_iter().map(|text| text.map_err(|why| why.to_string()).flatten());
    found.into_iter().map(|(_, path)| path).zip(texts).chain(closed).collect()
}

/// What may start PostgreSQL: data directories, the units that others start, and notes. `scripts` is [`scripts`].
pub(super) fn units(root: &Root, scripts: &[NamedFile]) -> (Vec<NamedFile>, Vec<String>, Vec<String>) {
    let (mut enabled, mut notes) = (Vec::new(), Notes::default());
    let mut units = Units { files: RootFiles::new(root, MAX_FILES), names: BTreeMap::new() };
    for place in PLACES {
        let mut list = |path: &str| units.files.names(path).map_err(|why| notes.add(why)).unwrap_or_default();
        let names = list(place);
        let pulls = |name: &&String| [".wants", ".requires", ".upholds"].iter().any(|end| name.ends_with(end));
        enabled.extend(names.iter().filter(pulls).flat_map(|name| list(&format!("{place}/{name}"))));
        units.names.insert(place, names);
    }
    let accounts = notes.keep(accounts::accounts(root)).unwrap_or_default();
    let all = units.names.values().flatten().chain(&enabled).map(|name| name.strip_suffix(".d").unwrap_or(name));
    let mut waiting: BTreeSet<_> = all.flat_map(with_service).collect();
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    while let Some(name) = waiting.pop_first() {
        match units.text(&name, &name) {
            Ok(text) => {
                let instances = instances(&name, &text);
                waiting.extend(instances.iter().flat_map(|one| with_service(one)).filter(|one| !seen.contains(one)));
                enabled.extend(instances);
                let directories = Service::new(&name, &text).directories(&name, &accounts, |path| units.named(path));
                found.extend(directories.into_iter().map(|one| (name.clone(), one)));
            }
            // Of those that may be anything, one is told.
            Err(_) if !tells(&name) && found.iter().any(|(_, one)| one.is_err()) => {}
            Err(why) => found.push((name.clone(), Err(format!("whether it starts a server is unknown: {why}")))),
        }
        seen.insert(name);
    }
    let of_script = |(path, text): &NamedFile| {
        if let Some(unit) = unit_of_quadlet(path) {
            return Some((unit, Err(IN_CONTAINER.to_owned())));
        }
        let unit =
            path.strip_prefix("/etc/init.d/").filter(|_| root.exists(RUNTIME)).map(|one| format!("{one}.service"));
        let is_unused = unit.as_ref().and_then(|unit| units.place(unit)).is_some_and(|place| place != LATE);
        let why = why_of_script(path, text.as_ref(), !is_unused)?;
        Some((unit.unwrap_or_else(|| path.clone()), Err(why)))
    };
    found.extend(scripts.iter().filter_map(of_script));
    found.sort();
    // One reason of each.
    found.dedup_by_key(|(name, one)| (name.clone(), one.clone().ok()));
    (found, enabled, notes.into_vec())
}

/// Why a script or a crontab may start a server; `None` if no line of it does. `stays`: what it starts is not meant to end.
fn why_of_script(path: &str, text: Result<&String, &String>, stays: bool) -> Option<String> {
    let text = match text {
        // What Debian's script starts is in /etc/postgresql.
        Ok(text) if text.contains("postgresql-common") => return None,
        // Of a program of supervisord's each line has a part.
        Ok(text) if text.contains("[program:") => text.replace('\n', " "),
        Ok(text) => text.replace("\\\n", " "),
        Err(why) => return Some(why.clone()),
    };
    let stays = stays && !PASSING.iter().any(|part| path.contains(part));
    let stays = |line: &str| stays || line.starts_with("@reboot");
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| may_start(path, line, stays(line))).next().map(str::to_owned)
}

/// The service that systemd's generator makes of the container in this file; `None` for other files, and for templates.
fn unit_of_quadlet(path: &str) -> Option<String> {
    let stem = [".container", ".kube"].iter().find_map(|end| path.strip_suffix(end))?;
    (!stem.ends_with('@')).then(|| format!("{}.service", stem.rsplit('/').next().unwrap_or(stem)))
}

/// The unit `name`, and the service that it starts if it is an instance of a timer or a socket; none of other files.
fn with_service(name: &str) -> Vec<String> {
    match name.rsplit_once('.').filter(|_| !name.contains("@.")) {
        Some((stem, "timer" | "socket" | "path")) => vec![name.to_owned(), format!("{stem}.service")],
        Some((_, "service" | "target")) => vec![name.to_owned()],
        _ => Vec::new(),
    }
}

/// The instances of templates that a unit with this text starts. systemd takes no longer name (`UNIT_NAME_MAX`).
fn instances(name: &str, text: &str) -> Vec<String> {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    let values = pairs.filter(|(key, _)| STARTS.contains(&key.trim()) || key.starts_with("Exec"));
    let words = values.flat_map(|(_, value)| value.split_whitespace()).filter(|word| word.contains('@'));
    let words = words.map(|word| specified(word, name)).filter(|word| !word.contains('/') && word.len() < 256);
    words.map(|word| if word.contains('.') { word } else { word + ".service" }).collect()
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

    fn place(&self, name: &str) -> Option<&'static str> {
        PLACES.into_iter().find(|place| self.has(place, name))
    }

    /// The text of the unit `name` and of its drop-ins, in the order in which they count; empty of one that is masked or not there.
    /// `file`: the name of its file, which is another one where it is an alias.
    fn text(&mut self, name: &str, file: &str) -> Result<String, String> {
        let end = name.rsplit('.').next().unwrap_or_default();
        let template = file.split_once('@').map(|(prefix, _)| format!("{prefix}@.{end}"));
        let of_name = |name: &str| Some(format!("{}/{name}", self.place(name)?));
        let Some(path) = of_name(file).or_else(|| of_name(template.as_ref()?)) else { return Ok(String::new()) };
        let dashes = name.match_indices('-').map(|(at, _)| format!("{}.{end}", &name[..=at]));
        let all = [end.to_owned()].into_iter().chain(dashes).chain(template);
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
                Some(RootEntry::Text(text)) => texts.push(text.replace("\\\n", " ")),
                Some(RootEntry::Link(target)) if target == "/dev/null" => texts.push(String::new()),
                Some(RootEntry::Link(target)) if part == path => {
                    let other = target.rsplit('/').next().unwrap_or_default();
                    if other != file && self.place(other).is_some() {
                        return self.text(name, other);
                    }
                    texts.push(self.named(&target)?.unwrap_or_default().replace("\\\n", " "));
                }
                _ => return Err(format!("{part} is not a regular file")),
            }
        }
        let is_masked = texts.first().is_none_or(String::is_empty);
        Ok(if is_masked { String::new() } else { texts.join("\n") })
    }

    /// The text of a file that a unit names; `None` if it is not there.
    fn named(&mut self, path: &str) -> Result<Option<String>, String> {
        let mut directories = Path::new(path).ancestors().skip(1).filter_map(Path::to_str);
        directories.try_for_each(|directory| self.files.names(directory).map(drop))?;
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
    use crate::postgresql_service::{NOT_KNOWN, NOT_READ};

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
            let root = Root::at(self.0.path());
            let (units, _, notes) = units(&root, &scripts(&root));
            let units = units.into_iter().map(|(name, found)| match found {
                Ok(directory) => format!("{name} {directory}"),
                Err(why) => format!("{name}: {why}"),
            });
            units.chain(notes).collect()
        }

        /// With this file alone.
        fn units_of(path: &str, text: &str) -> Vec<String> {
            Self::new(&[(path, text), ("run/systemd/system/.keep", "")]).units()
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
        // Of several the last name counts, wherever it is; of one name the first place, and /run only until the next boot.
        host.write(DROP_IN, "[Service]\nEnvironment=PGDATA=/data/pg15\n");
        host.write("run/systemd/system/postgresql-15.service.d/override.conf", "[Service]\nEnvironment=PGDATA=/no\n");
        assert_eq!(host.units(), ["postgresql-15.service /data/pg15"]);
        host.write("etc/systemd/system/postgresql-.service.d/zzz.conf", "[Service]\nEnvironment=PGDATA=/srv/%p/%N\n");
        // Another section, another file.
        host.write("etc/systemd/system/postgresql-15.service.d/zzzz.conf", "[Unit]\nEnvironment=PGDATA=/no\n");
        host.write("etc/systemd/system/postgresql-15.service.d/zzzz.txt", "[Service]\nEnvironment=PGDATA=/no\n");
        assert_eq!(host.units(), ["postgresql-15.service /srv/postgresql-15/postgresql-15"]);
        host.link("etc/systemd/system/postgresql-15.service", "/dev/null");
        assert_eq!(host.units(), [""; 0], "a unit that is masked does not start");
        let host = Host::new(&[(VENDOR, RED_HAT)]);
        host.link("run/systemd/system/postgresql-15.service", "/dev/null");
        assert_eq!(host.units(), ["postgresql-15.service /var/lib/pgsql/15/data/"], "masked until the next boot");
    }

    /// The lines of a table: what `text` has, in one line, and what is found.
    fn rows(table: &str) -> impl Iterator<Item = (String, &str)> {
        table
            .lines()
            .filter_map(|line| line.trim().split_once(" => "))
            .map(|(text, found)| (text.replace("\\n", "\n"), found))
    }

    #[test]
    fn where_units_name_the_directory() {
        let table = r#"
            Environment=PGPORT=5\nExecStart=/opt/bin/pg_ctl start -w -t 300 -D "/opt/pg/data" -o "-p ${PGPORT}" => /opt/pg/data
            ExecStart=/usr/bin/postgres -i \\n  --pgdata=/srv/a => /srv/a
            ExecStart=postgres -D /srv/shared_db/huge_1 => /srv/shared_db/huge_1
            ExecStart=${PGBIN}/postgres -D /srv/l => /srv/l
            ExecStart=/bin/true\nExecStartPost=/opt/pg_ctl start -D /srv/m => /srv/m
            ExecStart=/opt/pg_ctl start -D /srv/no --pgdata=/srv/o => /srv/o
            User=postgres\nExecStartPre=/opt/check-start.sh -D a\nExecStart=postgres -D /srv/n => /srv/n
            ExecStart=@/usr/bin/postgres postgres -D /srv/k => /srv/k
            ExecStart=/usr/bin/true\nExecStart=\nExecStart=!/usr/bin/postmaster -D/srv/c => /srv/c
            Environment=PGROOT=/srv/d\nExecStart=/usr/bin/postgres -D ${PGROOT}/data => /srv/d/data
            Environment=PGDATA=/srv/e\nExecStart=/usr/edb/as15/bin/edb-postmaster -D ${PGDATA} => /srv/e
            ExecStart=/usr/bin/postgres -D /srv/%i%I => /srv/a-ba/b
            EnvironmentFile=-/etc/db\nEnvironment=PGDATA=/no\nExecStart=/usr/bin/postgres -D $PGDATA => /srv/file
            EnvironmentFile=-/etc/none\nEnvironment=PGDATA=/srv/e\nExecStart=/usr/bin/postgres => /srv/e
            Environment=POSTGRES_DATADIR=~postgres/data\nExecStart=/x/postgresql-script start => /var/lib/pgsql/data
        "#;
        for (text, found) in rows(table) {
            let host = Host::new(&[("etc/db", "# PGDATA=/no\nPGDATA='/srv/file'\n")]);
            host.write("etc/systemd/system/pg@a-b.service", &format!("[Service]\n{text}\n"));
            assert_eq!(host.units(), [format!("pg@a-b.service {found}")], "{text}");
        }
        let two = "[Service]\nExecStart=/opt/pg_ctl start -D /a\nExecStart=/opt/pg_ctl start -D /b\n";
        assert_eq!(Host::units_of("etc/systemd/system/db.service", two), ["db.service /a", "db.service /b"]);
    }

    #[test]
    fn what_is_not_understood_is_said() {
        let table = r#"
            ExecStart=/usr/bin/postgres => its unit names no data directory
            ExecStart=/usr/share/postgresql/postgresql-script start => its unit names no data directory
            Environment="A=-c x=on"\nExecStart=/usr/bin/postgres -D /data $A => its unit has "-c, whose effect is not known here
            ExecStart=/usr/bin/postgres -D ${X} => its unit has ${X}, whose effect is not known here
            ExecStart=/opt/pg_ctl start -D /data -o '-B 10000' => its unit has '-B, whose effect is not known here
            ExecStart=/opt/pg_ctl start -D /data '-o-chuge_pages=on' => its unit has -o-chuge_pages=on, whose effect is not known here
            ExecStart=/opt/pg_ctl start -D /data -o--huge_pages=on => its unit has -o--huge_pages=on, whose effect is not known here
            ExecStart=/bin/postgres -D /data --config-file=/x => its unit has --config-file=/x, whose effect is not known here
            ExecStart=/opt/pg_ctl start -D /a ; /opt/pg_ctl start -D /b => its unit has ;, whose effect is not known here
            ExecStart=/usr/bin/postgres -D "/data 1" => its data directory "/data is not understood
            ExecStart=/usr/bin/postgres -D %h/data => its data directory %h/data is not understood
            Environment="PGDATA=/data 1"\nExecStart=/usr/bin/postgres => its data directory "/data is not understood
            Environment=PGDATA=data\nExecStart=/usr/bin/postgres => its data directory data is not understood
            RootDirectory=/srv\nExecStart=/usr/bin/postgres -D /data => its RootDirectory= is not followed
            ExecStart=/usr/bin/postgres -D /data\nBindPaths=/a:/data => its BindPaths= is not followed
            EnvironmentFile=/etc/*.env\nExecStart=/usr/bin/postgres => /etc/*.env of EnvironmentFile= is a pattern
            EnvironmentFile=/etc/link\nExecStart=/usr/bin/postgres => /etc/link is not a regular file
            ExecStart=/usr/sbin/chroot /srv /usr/bin/postgres -D /data => NOT_READ
            ExecStart=/bin/sh -c 'cd /; exec /usr/bin/postgres -D /data' => NOT_READ
            ExecStart=/bin/su - postgres -c '/opt/pg/bin/pg_ctl start -D /srv/b' => NOT_READ
            ExecStart=/usr/bin/numactl --interleave=all /usr/bin/postgres -D /data => NOT_READ
            ExecStart=/usr/bin/python3 /opt/bin/patroni x => NOT_READ
            ExecStart=/bin/sh -c 'cd /; exec postgres -D /data/pg; true' => NOT_KNOWN
            User=postgres\nExecStart=/bin/sh -c 'mkdir -p /run/x; /opt/run.sh' => NOT_KNOWN
            User=postgres\nExecStart=/opt/run.sh -D /srv/pg_data => NOT_KNOWN
            User=postgres\nExecStart=/opt/run.sh => NOT_KNOWN
            User=26\nExecStart=/opt/run.sh => NOT_KNOWN
            ExecStart=/bin/true\nExecStartPost=/bin/su - postgres -c "pg_ctl start -D /a" => NOT_READ
            ExecStartPre=/bin/su dba -c "/opt/pg_ctl start -D /a"\nExecStart=/opt/app => NOT_READ
            ExecStart=/usr/bin/ctr run docker.io/library/postgres:16 pg => IN_CONTAINER
            ExecStart=/usr/bin/lxc-start -n db -F => IN_CONTAINER
            ExecStart=systemd-nspawn --quiet --boot --machine=db => IN_CONTAINER
            ExecStart=/opt/start_postgres.sh => NOT_KNOWN
            Type=oneshot\nRemainAfterExit=yes\nExecStart=/opt/own-postgres => NOT_KNOWN
            ExecStart=/usr/bin/podman run -v pg:/var/lib/postgresql/data docker.io/library/postgres:17 => IN_CONTAINER
            Type=oneshot\nWorkingDirectory=/srv/db\nExecStart=/usr/bin/docker compose up -d => IN_CONTAINER
        "#;
        for (text, why) in rows(table) {
            let host = Host::new(&[("etc/systemd/system/db.service", &format!("[Service]\n{text}\n"))]);
            host.link("etc/link", "/etc/other");
            host.write("etc/passwd", "postgres:x:26:26:::\n");
            assert_eq!(host.units(), [format!("db.service: {}", said(why))], "{text}");
        }
        for text in [
            "ExecStart=/usr/bin/postgres_exporter -D /x\n",
            "Type=notify\nUser=postgres\nExecStart=/usr/sbin/pgbouncer -q /etc/pgbouncer.ini\n",
            "User=postgres\nExecStart=/usr/bin/pg_receivewal -D /x\n",
            "Type=oneshot\nUser=postgres\nExecStart=/opt/backup.sh\n",
            "ExecStart=/usr/bin/docker exec db pg_dump -U postgres\n",
            "ExecStart=/usr/bin/podman $LOGGING start --all --filter restart-policy=always\n",
            "ExecStart=/bin/sh -c 'sudo -u postgres pg_dump x'\n",
            "ExecStart=/opt/app --db postgres://localhost/app\n",
            "Type=forking\nExecStart=/opt/start.sh\n",
            "User=26\nExecStart=/opt/run.sh\n",
            "ExecStart=/usr/libexec/lxc/lxc-containers start\n",
            "ExecStartPre=/usr/bin/pg_ctl status -D /x\nExecStart=/opt/app\n",
            "",
        ] {
            let unit = format!("[Service]\n{text}");
            assert_eq!(Host::units_of("etc/systemd/system/db.service", &unit), [""; 0], "{text}");
        }
        let script = "[Service]\nType=forking\nExecStart=/etc/init.d/postgresql start\n";
        let found = format!("postgresql.service: {NOT_KNOWN}");
        assert_eq!(Host::units_of("run/systemd/generator.late/postgresql.service", script), [found]);
        let debian = "[Service]\nExecStart=-/usr/bin/pg_ctlcluster --skip-systemctl-redirect %i start\n";
        assert_eq!(Host::units_of("etc/systemd/system/postgresql@15-a.service", debian), [""; 0]);
    }

    /// What is said of it, by the name of its constant.
    fn said(why: &str) -> &str {
        match why {
            "NOT_READ" => NOT_READ,
            "NOT_KNOWN" => NOT_KNOWN,
            "IN_CONTAINER" => IN_CONTAINER,
            why => why,
        }
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
        host.write("etc/systemd/system/all.target", "[Unit]\nAfter=pg@no.service\nWants=x.service \\\n pg@d.service\n");
        host.write("etc/systemd/system/app@.service", "[Unit]\nRequires=pg@%i.service\n");
        host.link("etc/systemd/system/multi-user.target.wants/app@e.timer", "/etc/systemd/system/app@.timer");
        host.write("etc/systemd/system/by.service", "[Service]\nExecStart=/usr/bin/systemctl start pg@f\n");
        host.write("etc/systemd/system/db.socket", "[Socket]\nService=pg@g.service\n");
        let of = |name: &str, found: &str| format!("pg@{name}.service {found}");
        let all = [of("a", "/srv/a"), of("b", "/b/b"), of("c", "/srv/c"), of("d", "/srv/d"), of("e", "/srv/e")];
        assert_eq!(host.units(), [&all[..], &[of("f", "/srv/f"), of("g", "/srv/g")]].concat());
    }

    #[test]
    fn units_whose_name_does_not_tell() {
        let unit = "[Service]\nExecStart=/usr/bin/postgres -D /srv/a\n";
        let host = Host::new(&[("opt/own/db.service", unit)]);
        host.link("etc/systemd/system/db.service", "/opt/own/db.service");
        assert_eq!(host.units(), ["db.service /srv/a"], "linked");
        let path = host.0.path().join("opt/own/db.service");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let why = "db.service: whether it starts a server is unknown: ";
        assert!(host.units()[0].starts_with(why), "{:?}", host.units());
        fs::remove_file(path).unwrap();
        assert_eq!(host.units(), [""; 0], "there is none");
        for place in ["usr/lib/systemd/system", "etc/systemd/system.attached", "etc/systemd/system.control"] {
            assert_eq!(Host::units_of(&format!("{place}/db.service"), unit), ["db.service /srv/a"]);
        }
        let many = Host::new(&[]);
        (0..2010).for_each(|number| many.write(&format!("etc/systemd/system/{number}.service"), "[Service]\n"));
        assert_eq!(many.units().len(), 1, "{:?}", many.units());
    }

    #[test]
    fn scripts_and_crontabs() {
        let table = r##"
            cron.d/pg: @reboot	postgres /opt/pg_ctl -D /srv/a start => NOT_READ
            cron.d/pg: */5 * * * * postgres /opt/pg_ctl -D /a status || /opt/pg_ctl -D /a start => NOT_READ
            crontab: @reboot postgres PGDATA=/srv/b pg_ctl start => NOT_READ
            crontab: @reboot postgres /home/postgres/run.sh => NOT_KNOWN
            anacrontab: 1 5 db su - postgres -c 'pg_ctl -D /srv/c start' => NOT_READ
            ../var/spool/cron/root: @reboot su - postgres -c '/opt/pg_ctl -D /srv/f start' => NOT_READ
            ../var/spool/cron/alice: @reboot docker compose -f /srv/x.yml up -d => IN_CONTAINER
            ../var/spool/cron/crontabs/postgres: @reboot /opt/run.sh => NOT_KNOWN
            ../var/spool/cron/crontabs/postgres: */5 * * * * /opt/restart_if_down.sh => NOT_KNOWN
            ../var/spool/cron/postgres: MAILTO=dba\n0 3 * * * /opt/backup.sh\n0 0 * * * pg_ctl -D /srv/a reload => -
            ../var/spool/cron/postgres: 0 3 * * * psql -c 'SELECT pg_backup_start(1)' && docker run --rm backup => -
            ../var/spool/cron/root: 0 4 * * * /opt/backup /srv/f => -
            cron.d/pg: 0 3 * * * postgres pg_dump -f /a db\n0 4 * * * postgres pg_basebackup -D /b => -
            rc.local: # pg_ctl -D /no start\nsu - postgres -c \\n 'pg_ctl -D /srv/e start' => NOT_READ
            rc.local: su - postgres -c /home/postgres/run.sh & => NOT_KNOWN
            rc.local: /opt/postgres/run & => NOT_KNOWN
            rc.local: /opt/start_firewall\nsystemctl start postgresql => -
            supervisor/conf.d/pg.conf: [program:x]\ncommand=/opt/run.sh\nuser=postgres => NOT_KNOWN
            supervisord.d/web.ini: [program:web]\nuser=www\ncommand=/opt/web --port 5 => -
            service/pg/run: #!/bin/sh\nexec chpst -u postgres /opt/postgres -D "$PGDATA" => NOT_READ
            supervisord.conf: [program:x]\ncommand=/opt/postgres -D /data/pg => NOT_READ
            supervisor/supervisord.conf: [supervisord]\nuser=root\n[include]\nfiles = conf.d/*.conf => -
            monit/conf.d/pg: check process pg with pidfile /data/pg.pid\nstart program = "/opt/pg_ctl -D /a start" => NOT_READ
            monit.d/pg: start program = "/etc/init.d/postgresql start"\nif failed port 5432 protocol pgsql then alert => -
            cron.hourly/pg: #!/bin/sh\npg_ctl start -D /data/pg => NOT_READ
            cron.daily/postgresql-backup: #!/bin/sh\nsu postgres -c '/opt/backup /var/lib/postgresql' => -
            cloud/cloud.cfg.d/x.cfg: bootcmd:\n- su postgres -c "pg_ctl start -D /data/pg" => NOT_READ
            cloud/cloud.cfg: packages: [postgresql]\nwrite_files:\n- path: /etc/postgresql/16/main/conf.d/x.conf => -
            ../var/lib/cloud/scripts/per-boot/pg: su postgres -c 'pg_ctl start -D /data/pg' => NOT_READ
            services.d/pg/run: exec s6-setuidgid postgres /opt/postgres -D /a => NOT_READ
            ../service/pg/run: exec setuidgid postgres /opt/postgres -D /a => NOT_READ
            ../service/pg/supervise/status: exec /opt/postgres -D /a => -
            local.d/pg.start: su postgres -c 'pg_ctl start -D /a' => NOT_READ
            local.d/pg.stop: su postgres -c 'pg_ctl stop -D /a' => -
            NetworkManager/dispatcher.d/50-pg: pg_ctl start -D /a => NOT_READ
            inittab: pg:345:respawn:/bin/su postgres -c '/opt/postgres -D /srv/a' => NOT_READ
        "##;
        for (row, why) in rows(table) {
            let (path, text) = row.split_once(": ").unwrap();
            let path = format!("etc/{path}").replace("etc/../", "");
            let found: Vec<_> = Some(format!("/{path}: {}", said(why))).filter(|_| why != "-").into_iter().collect();
            assert_eq!(Host::units_of(&path, text), found, "{row}");
        }
        let of_init = |text: &str| Host::new(&[("etc/init.d/postgresql", text)]).units();
        assert_eq!(of_init("#!/sbin/openrc-run\nstart() {\n"), [format!("/etc/init.d/postgresql: {NOT_KNOWN}")]);
        let debian = ". /usr/share/postgresql-common/init.d-functions\n";
        assert_eq!(of_init(debian), [""; 0], "Debian's");
        assert_eq!(Host::units_of("etc/init.d/postgresql", debian), [""; 0], "Debian's, which systemd does not use");
        let of_unit = [format!("db.service: {NOT_READ}")];
        let own = "su - postgres -c 'pg_ctl start -D /a'\n";
        assert_eq!(Host::units_of("etc/init.d/db", own), of_unit, "no unit is made yet");
        let made = Host::new(&[("etc/init.d/db", own), ("run/systemd/system/.keep", "")]);
        made.write("run/systemd/generator.late/db.service", "[Service]\nExecStart=/etc/init.d/db start\n");
        assert_eq!(made.units(), of_unit);
        let pooler = Host::new(&[("etc/init.d/pgbouncer", "RUNASUSER=postgres\n"), ("run/systemd/system/.keep", "")]);
        pooler.write("lib/systemd/system/pgbouncer.service", "[Service]\nExecStart=/usr/sbin/pgbouncer\n");
        assert_eq!(pooler.units(), [""; 0], "a package's script, which systemd does not use");
        let linked = Host::new(&[("etc/sv/db/run", "exec pg_ctl start\n"), ("run/systemd/system/.keep", "")]);
        linked.link("etc/service/db", "/etc/sv/db");
        assert_eq!(linked.units(), ["/etc/service/db/run", "/etc/sv/db/run"].map(|path| format!("{path}: {NOT_READ}")));
        let closed = Host::new(&[]);
        fs::create_dir_all(closed.0.path().join("var/spool/cron")).unwrap();
        closed.link("var/spool/cron/crontabs", "crontabs");
        assert!(closed.units()[0].starts_with("/var/spool/cron/crontabs: could not"), "{:?}", closed.units());
    }

    #[test]
    fn quadlets_before_the_generator_has_run() {
        let found = [format!("db.service: {IN_CONTAINER}")];
        for path in ["etc/containers/systemd/db.container", "etc/containers/systemd/sub/db.kube"] {
            assert_eq!(Host::units_of(path, "[Container]\nImage=registry/own:17\n"), found, "{path}");
        }
        assert_eq!(Host::units_of("etc/containers/systemd/db@.container", "[Container]\n"), [""; 0], "a template");
    }
}
