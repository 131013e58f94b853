//! PostgreSQL clusters that are configured here and not running: their locations, and the huge pages that their next start asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::slice;

use hugepage_assess::model::HugePages;
use hugepage_kernel::postgresql::postgresql_conf::Configuration;
use hugepage_kernel::postgresql::postmaster_opts;
use hugepage_kernel::stranger::limit;
use hugepage_kernel::{InstanceFiles, Notes, ReadError, Root};
use hugepage_oracle::stopped::{self, Claim};
use hugepage_sizing::{StoppedDatabase, Wants};
use hugepage_start::StartAnswer;

use super::cluster_paths::{ClusterPaths, DEBIAN, PACKAGES};
use super::identify::ServerIdentity;
use super::next_start::{AskStart, ServerFiles, StartProgram};
use super::postgresql::{Configured, requested_by_settings};
use super::postgresql_service::{IN_CONTAINER, NOT_KNOWN};
use super::postgresql_units::{NamedFile, scripts, units};
use super::snapshot::{HostFacts, Snapshot, StoppedClusters};
use super::stopped_readers::by_owners;
use crate::readers::{self, Owner};

/// A file for each account whose own service manager runs from the boot on (loginctl(1)).
const LINGER: &str = "/var/lib/systemd/linger";
const LINGERS: &str = "it lingers, and the units in its home directory are not read";

impl Snapshot {
    /// Adds the PostgreSQL clusters that do not run: those in the directories of Debian and Red Hat, in systemd units, and in `given`.
    /// `ask` answers what a start of one asks for, as the user of the cluster.
    pub fn find_stopped_clusters(&mut self, root: &Root, given: &[PathBuf], ask: Option<&AskStart<'_>>) {
        let (mut unread, mut notes) = (Vec::new(), Notes::default());
        let (host, running) = (&self.host, self.servers.iter().map(|server| &server.id).collect::<Vec<_>>());
        let scripts = scripts(root);
        let read_units = || units(root, &scripts);
        let (mut units, enabled, noted) = readers::read_as(&Owner::nobody(root), read_units).unwrap_or_else(|why| {
            why.add_to(&mut unread);
            Default::default()
        });
        noted.into_iter().for_each(|note| notes.add(note));
        units.retain(|unit| !is_settled(root, &running, unit));
        let lingering = root.list(LINGER).unwrap_or_default().into_iter().filter(|name| name != "root");
        units.extend(lingering.map(|name| (name, Err(LINGERS.to_owned()))));
        // The first counts of several with one data directory.
        let places = units.iter().filter_map(|(_, directory)| directory.clone().ok());
        let places = places.chain(given.iter().map(|directory| directory.to_string_lossy().into_owned()));
        let places: Vec<_> = places.chain([DEBIAN].into_iter().chain(PACKAGES).map(str::to_owned)).collect();
        let search = Clusters { root, host, running: &running, given, ask, units: &units, enabled: &enabled };
        let mut clusters = BTreeMap::new();
        // One that a service account has found does not count for nobody, who comes last.
        let find = |place: Option<&String>, is_mine: &dyn Fn(Option<u32>) -> Claim, notes: &mut Notes| {
            search.find(place.map_or(&*places, slice::from_ref), is_mine, notes)
        };
        for one in by_owners(&host.owners, || places.clone(), &mut unread, &mut notes, find) {
            clusters.entry(PathBuf::from(&one.name)).or_insert(one);
        }
        unread.iter().for_each(|unread| notes.add(unread.to_string()));
        let of_unit =
            |(unit, why): &NamedFile| Some(ClusterPaths::in_directory(Path::new(unit)).unknown(why.clone().err()?));
        let oracle = running.iter().filter_map(|id| Some(id.oracle()?.kind));
        let unlisted = stopped::unlisted(root, oracle.chain(host.stopped.iter().map(|one| one.kind)));
        let found = units.iter().filter_map(of_unit).chain(clusters.into_values()).chain(unlisted).collect();
        self.host.stopped_clusters = StoppedClusters { found, notes: notes.into_vec(), unread };
    }
}

/// Whether what a unit or a script may start runs: one in which no server is seen runs something else.
fn is_settled(root: &Root, running: &[&ServerIdentity], (unit, directory): &NamedFile) -> bool {
    let Err(why) = directory else { return false };
    let events = ["system", "machine"].map(|slice| format!("/sys/fs/cgroup/{slice}.slice/{unit}/cgroup.events"));
    let is_populated = |events: &String| root.read_short(events, |text| text.contains("populated 1")).unwrap_or(false);
    let is_started = || root.exists(&format!("/run/openrc/started/{}", unit.rsplit('/').next().unwrap_or_default()));
    running.iter().any(|id| id.service.as_ref() == Some(unit))
        || [IN_CONTAINER, NOT_KNOWN].contains(&&**why) && (events.iter().any(is_populated) || is_started())
}

/// Where clusters may be.
struct Clusters<'a> {
    root: &'a Root,
    host: &'a HostFacts,
    running: &'a [&'a ServerIdentity],
    given: &'a [PathBuf],
    ask: Option<&'a AskStart<'a>>,
    /// The units that do not run, each with its directory or why that is unknown.
    units: &'a [NamedFile],
    /// The units that others start, as at boot.
    enabled: &'a [String],
}

impl Clusters<'_> {
    /// The clusters in these places that are this process's to read.
    fn find(
        &self,
        places: &[String],
        is_mine: &dyn Fn(Option<u32>) -> Claim,
        notes: &mut Notes,
    ) -> Vec<StoppedDatabase> {
        let Self { root, given, .. } = *self;
        let running: BTreeSet<_> = self.running.iter().filter_map(|id| id.postgresql()?.inode).collect();
        let (mut seen, mut found) = (BTreeMap::new(), Vec::new());
        // A timer starts the service of its name.
        let stem = |name: &str| name.rsplit_once('.').map(|(stem, _)| stem.to_owned());
        let is_enabled = |unit: &str| self.enabled.iter().any(|name| stem(name) == stem(unit));
        let files = InstanceFiles::own(root);
        // Also of one whose directory only its own user sees.
        let runs = |at: &Path| self.running.iter().any(|id| id.place.container.is_none() && Path::new(&id.name) == at);
        let clusters = places.iter().flat_map(|place| {
            ClusterPaths::of_place(root, place, notes).into_iter().map(move |cluster| (place, cluster))
        });
        for (place, cluster) in clusters.collect::<Vec<_>>() {
            let data = cluster.data.to_string_lossy();
            // Debian's unit starts the clusters that have the word `auto`.
            let is_automatic = cluster.start == "auto" && is_enabled("postgresql.service");
            let version = files.owner(&format!("{data}/PG_VERSION"));
            let is_at_boot = |(unit, directory): &NamedFile| directory.as_ref() == Ok(place) && is_enabled(unit);
            let is_expected = is_automatic || given.contains(&cluster.data) || self.units.iter().any(is_at_boot);
            let is_absent = !is_expected && version.as_ref().is_err_and(ReadError::is_not_found);
            let inode = files.root().inode(&data);
            let claim = is_mine(version.as_ref().ok().copied());
            let mut is_seen = |inode| *seen.entry(inode).or_insert_with(|| cluster.data.clone()) != cluster.data;
            let is_known = runs(&cluster.data) || inode.is_some_and(|inode| running.contains(&inode) || is_seen(inode));
            if is_absent || is_known || claim == Claim::OfAnother {
                continue;
            }
            found.push(match version {
                Ok(_) if claim == Claim::OfNobody => {
                    cluster.stopped(None, Wants::None("its owner is no service account".into()))
                }
                Ok(_) => self.inspect(&cluster, notes),
                Err(error) if error.is_not_found() => {
                    cluster.unknown("it is not a PostgreSQL data directory: it has no PG_VERSION".to_owned())
                }
                Err(error) => cluster.unknown(format!("whether it is a data directory is unknown: {error}")),
            });
        }
        found
    }

    fn inspect(&self, cluster: &ClusterPaths, notes: &mut Notes) -> StoppedDatabase {
        let (files, directory) = (InstanceFiles::own(self.root), cluster.data.to_string_lossy());
        let mut configuration = Configuration::default();
        for file in [&cluster.config, &cluster.data.join("postgresql.auto.conf")] {
            configuration.add(&files, file, notes);
        }
        if configuration.settings.is_empty() {
            return cluster.unknown("its configuration could not be read".to_owned());
        }
        let missing = configuration.missing.as_ref().map(|error| format!("its next start would fail: {error}"));
        let text = |path: &str| files.read_text(path, limit::POSTMASTER_OPTS).unwrap_or_default();
        // Of Debian: an option with an `o` hands others to the server (pg_ctlcluster(1)).
        let options = text(&cluster.config.with_file_name("pg_ctl.conf").to_string_lossy());
        let options = options.lines().filter(|line| !line.trim_start().starts_with('#'));
        let mut options = options.flat_map(|line| line.split(['=', '\'', '"', ' ']));
        let option = options.find(|word| word.starts_with('-') && word.contains('o'));
        let option = option.map(|option| format!("its pg_ctl.conf has {option}, whose effect is not known here"));
        let unclear = missing.or_else(|| configuration.unclear.clone()).or(option);
        let options =
            postmaster_opts::settings(&postmaster_opts::arguments(&text(&format!("{directory}/postmaster.opts"))));
        let configured = Configured { files: configuration, options };
        let settings = configured.effective();
        let requested = requested_by_settings(&settings, notes);
        let shared_memory = || {
            let ask = self.ask.ok_or("unknown: only on the host itself a program is asked")?;
            let version = files.version(&format!("{directory}/PG_VERSION")).map_err(|error| error.to_string())?;
            let (program, version, directory) = (StartProgram::Packaged, &*version, &*directory);
            let server = ServerFiles { program, version, directory, files: &files, configured: &configured };
            match ask(&server.question()?.0) {
                StartAnswer::Starts(size) => Ok(size),
                StartAnswer::Refuses(why) => Err(format!("its next start would fail: {why}")),
                StartAnswer::Unknown(why) => Err(why),
            }
        };
        let wants = match requested.huge_page_size.or(self.host.default_page_size()) {
            _ if cluster.start == "disabled" => Wants::None("disabled in its start.conf".into()),
            _ if unclear.is_some() => Wants::Unknown(unclear.unwrap_or_default()),
            _ if settings.get("huge_pages").copied() != configured.files.get("huge_pages") => {
                let why = "its last start had huge_pages on its command line, which the next need not have";
                Wants::Unknown(why.to_owned())
            }
            _ if requested.huge_pages == HugePages::Off => Wants::None("huge_pages = off".into()),
            _ if requested.never_in_huge_pages() => Wants::None("shared_memory_type = sysv".into()),
            None => Wants::Unknown("the size of huge pages is unknown".to_owned()),
            Some(page_size) => shared_memory()
                .map_or_else(Wants::Unknown, |size| Wants::Pages(page_size.pages_to_hold(size), "postgres -C".into())),
        };
        cluster.stopped(requested.huge_page_size, wants)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Debian's clusters, those of a unit and those of Red Hat's packages.
    #[test]
    fn where_stopped_clusters_are() {
        let tree = tempfile::tempdir().unwrap();
        for (name, start) in [("auto", "auto\n"), ("manual", "# by hand\nmanual\n")] {
            let directory = tree.path().join(format!("etc/postgresql/17/{name}"));
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("start.conf"), start).unwrap();
            fs::write(directory.join("postgresql.conf"), format!("data_directory = '/srv/{name}'\nhuge_pages = on\n"))
                .unwrap();
        }
        for data in ["srv/auto", "srv/manual", "var/lib/pgsql/16/data", "var/lib/pgsql/15/data"] {
            fs::create_dir_all(tree.path().join(data)).unwrap();
            fs::write(tree.path().join(data).join("PG_VERSION"), "17\n").unwrap();
            fs::write(tree.path().join(data).join("postgresql.conf"), "huge_pages = on\n").unwrap();
        }
        let wants = tree.path().join("etc/systemd/system/multi-user.target.wants");
        fs::create_dir_all(&wants).unwrap();
        let unit = "[Service]\nEnvironment=PGDATA=/var/lib/pgsql/16/data/\nExecStart=/usr/bin/postgres -D ${PGDATA}\n";
        fs::create_dir_all(tree.path().join("usr/lib/systemd/system")).unwrap();
        fs::write(tree.path().join("usr/lib/systemd/system/postgresql-16.service"), unit).unwrap();
        for unit in ["postgresql.service", "postgresql-16.service"] {
            std::os::unix::fs::symlink(format!("/usr/lib/systemd/system/{unit}"), wants.join(unit)).unwrap();
        }
        let root = &Root::at(tree.path());
        let mut snapshot = Snapshot::read(root, &[], None);
        snapshot.find_stopped_clusters(root, &[], None);
        let mut found: Vec<_> = snapshot.host.stopped_clusters.found.iter().map(|one| one.name.as_str()).collect();
        found.sort_unstable();
        assert_eq!(found, ["/srv/auto", "/srv/manual", "/var/lib/pgsql/15/data", "/var/lib/pgsql/16/data"]);
    }

    /// Only pg_ctlcluster heeds start.conf and pg_ctl.conf.
    #[test]
    fn a_unit_or_options_beside_debians_configuration() {
        let not_asked = "unknown: only on the host itself a program is asked";
        for (unit, options, start, huge_pages, found) in [
            ("/no", "", "disabled", "on", "disabled in its start.conf"),
            ("/srv/a", "", "disabled", "on", "its configuration could not be read"),
            ("/etc/postgresql/17/a", "", "disabled", "on", not_asked),
            ("/no", "pg_ctl_options = ''", "auto", "off", "huge_pages = off"),
            ("/no", "# pg_ctl_options = '-o x'\npg_ctl_options = '-w -t 60'", "auto", "off", "huge_pages = off"),
            (
                "/no",
                "pg_ctl_options = '-o \"-c huge_pages=on\"'",
                "auto",
                "off",
                "its pg_ctl.conf has -o, whose effect is not known here",
            ),
        ] {
            let tree = tempfile::tempdir().unwrap();
            let write = |path: &str, text: &str| {
                let path = tree.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            };
            write("etc/systemd/system/db.service", &format!("[Service]\nExecStart=/usr/bin/postgres -D {unit}\n"));
            let configuration = format!("data_directory = '/srv/a'\nhuge_pages = {huge_pages}\n");
            write("etc/postgresql/17/a/postgresql.conf", &configuration);
            write("etc/postgresql/17/a/start.conf", start);
            write("etc/postgresql/17/a/pg_ctl.conf", options);
            write("srv/a/PG_VERSION", "17\n");
            write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0\n");
            write("proc/meminfo", "MemTotal: 8000000 kB\nHugepagesize: 2048 kB\n");
            let root = &Root::at(tree.path());
            let mut snapshot = Snapshot::read(root, &[], None);
            snapshot.find_stopped_clusters(root, &[], None);
            let wants = match &snapshot.host.stopped_clusters.found[..] {
                [StoppedDatabase { name, wants: Wants::None(why), .. }] if name == "/srv/a" => why.to_string(),
                [StoppedDatabase { name, wants: Wants::Unknown(why), .. }] if name == "/srv/a" => why.clone(),
                found => panic!("{found:?}"),
            };
            assert_eq!(wants, found, "{unit} {options}");
        }
    }
}
