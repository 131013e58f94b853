//! Servers that do not run and count: PostgreSQL clusters in the directories of packages and where root says, and what was seen here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::slice;

use hugepage_facts::{
    ClusterFacts, ClusterFiles, ClusterFound, Configured, Remembered, ServerIdentity, Snapshot,
    StartAnswer, StoppedServers, Unread, UnreadList,
};
use hugepage_kernel::postgresql::postmaster_opts;
use hugepage_kernel::{
    Bytes, Configuration, InstanceFiles, Notes, ReadError, Root, if_there, limit,
};
use hugepage_oracle::stopped::{self, Claim, ClaimOf};

use crate::cluster_paths::{ClusterPaths, DEBIAN, PACKAGES, of_nobody};
use crate::data_directory;
use crate::identify::owns_its_directory;
use crate::next_start::{AskStart, StartFiles, StartProgram};
use crate::postgresql_settings::{requested_by_settings, without_others};
use crate::reading::add_failures;
use crate::remembered::{POSTGRESQL_DATA, by_worker, told_servers};
use crate::stopped_needs::{asks_for_pages, is_cluster_of_host, unclear};
use crate::stopped_readers::by_owners;

/// A place, and the cluster there that does not run; `None` if what is there is known and none of these.
type Place = (PathBuf, Option<ClusterFacts>);

/// Adds the servers that do not run: the clusters in the directories of packages, in those of [`POSTGRESQL_DATA`] and in `given`, and
/// those of `seen` that are none of these. `ask` answers what a start of a cluster asks for, as its user.
pub fn find_stopped(
    snapshot: &mut Snapshot,
    root: &Root,
    given: &[PathBuf],
    seen: &[Remembered],
    ask: Option<&AskStart<'_>>,
) {
    let mut unread = Vec::new();
    let mut notes = Notes::default();
    let host = &snapshot.host;
    let running: Vec<_> = snapshot.servers.iter().map(|server| &server.id).collect();
    let told = told_servers(root);
    let given = [told.as_deref().unwrap_or_default(), given].concat();
    let seen: Vec<_> = seen.iter().filter(|one| !one.is_gone).collect();
    let of_host = seen.iter().filter(|one| is_cluster_of_host(&one.key));
    let was_in: Vec<_> = of_host.map(|one| PathBuf::from(&one.key.name)).collect();
    let of_packages = DEBIAN.into_iter().chain(PACKAGES).map(str::to_owned);
    let by_name = given.iter().chain(&was_in);
    // The first counts of several with one data directory.
    let places: Vec<_> = of_packages
        .chain(by_name.map(|directory| directory.to_string_lossy().into_owned()))
        .collect();
    let search = Clusters {
        root,
        running: &running,
        given: &given,
        was_in: &was_in,
        ask,
    };
    let found = by_owners(
        &host.owners,
        &places,
        &mut unread,
        &mut notes,
        |place, is_mine, notes| {
            search.find(place.map_or(&*places, slice::from_ref), is_mine, notes)
        },
    );
    notes.extend(unread.iter().map(Unread::to_string));
    let unread_list = |why| UnreadList {
        kind: "postgresql".to_owned(),
        name: POSTGRESQL_DATA.to_owned(),
        why,
    };
    snapshot.host.stopped_servers = StoppedServers {
        places: found,
        remembered: seen.into_iter().cloned().collect(),
        has_grid_registry: stopped::has_grid_registry(root),
        unread_lists: told.err().map(unread_list).into_iter().collect(),
        notes: notes.into_vec(),
        unread,
    };
    add_failures(&mut snapshot.host.unread);
}

/// Where clusters may be.
struct Clusters<'a> {
    root: &'a Root,
    running: &'a [&'a ServerIdentity],
    given: &'a [PathBuf],
    /// The data directories of servers that were seen.
    was_in: &'a [PathBuf],
    ask: Option<&'a AskStart<'a>>,
}

impl Clusters<'_> {
    /// What is in these places, as far as it is this process's to read.
    fn find(&self, places: &[String], is_mine: ClaimOf<'_>, notes: &mut Notes) -> Vec<Place> {
        let files = InstanceFiles::own(self.root);
        let mut seen = BTreeMap::new();
        let mut found = Vec::new();
        for place in places {
            let is_named = self.given.contains(&PathBuf::from(place));
            let clusters = match ClusterPaths::of_place(self.root, place, is_mine, notes) {
                Ok(clusters) => clusters,
                // Another reader may list it.
                Err(error) => {
                    let at = ClusterPaths::in_directory(Path::new(place));
                    let what = match is_mine(files.owner(place).ok()) {
                        Claim::OfAnother => continue,
                        Claim::OfNobody => at.facts(of_nobody(is_named)),
                        Claim::Mine => at.facts(ClusterFound::Unread(error.to_string())),
                    };
                    found.push((at.name().into(), Some(what)));
                    continue;
                }
            };
            if DEBIAN.iter().chain(&PACKAGES).any(|one| place == one) {
                found.push((PathBuf::from(place), None));
            }
            let was_seen = !is_named && self.was_in.contains(&PathBuf::from(place));
            for cluster in clusters {
                let what = if self.is_elsewhere(&cluster, &mut seen) {
                    Some(None)
                } else if was_seen {
                    // It counts as what it was.
                    None
                } else {
                    self.cluster(&cluster, is_named, is_mine, notes)
                };
                found.extend(what.map(|what| (cluster.name().into(), what)));
            }
        }
        found
    }

    /// Whether a server runs in the data directory of `cluster`, or it is one of those `seen` before, by their inodes, under another name.
    fn is_elsewhere(
        &self,
        cluster: &ClusterPaths,
        seen: &mut BTreeMap<(u64, u64), PathBuf>,
    ) -> bool {
        let inode = self.root.inode(&cluster.data.to_string_lossy());
        let mut ids = self.running.iter().filter(|id| owns_its_directory(id));
        let runs = ids.any(|id| {
            let its = id.postgresql().and_then(|server| server.inode);
            // Also where only its own user sees that.
            inode.is_some() && its == inode
                || id.place.container.is_none() && id.name == cluster.name()
        });
        let first = inode.map(|inode| seen.entry(inode).or_insert_with(|| cluster.data.clone()));
        runs || first.is_some_and(|first| *first != cluster.data)
    }

    /// What a cluster is that does not run; `None` if that is not this process's to say. `is_named`: whether root names its directory.
    fn cluster(
        &self,
        cluster: &ClusterPaths,
        is_named: bool,
        is_mine: ClaimOf<'_>,
        notes: &mut Notes,
    ) -> Option<Option<ClusterFacts>> {
        let files = InstanceFiles::own(self.root);
        let data = cluster.data.to_string_lossy();
        let version = files.owner(&format!("{data}/PG_VERSION"));
        if version.as_ref().is_err_and(ReadError::is_not_found) {
            if self.was_in.contains(&cluster.data) {
                return None;
            }
            let is_dangling = |at: &Path| {
                let at = at.to_string_lossy();
                self.root.read_link(&at).is_ok() && !self.root.exists(&at)
            };
            let is_missing = cluster.data.ancestors().any(is_dangling);
            let why = if is_missing {
                "a link on its path leads to nothing: a file system may not be mounted"
            } else {
                "it is not a PostgreSQL data directory: it has no PG_VERSION"
            };
            let is_one = is_named || is_missing || cluster.is_configured;
            return Some(is_one.then(|| cluster.facts(ClusterFound::Unread(why.to_owned()))));
        }
        let config = if_there(files.owners(&cluster.config.to_string_lossy()));
        let owner = version.as_ref().ok().copied();
        let is_owner = |uid: &u32| Some(*uid) == owner;
        let found = match (is_mine(owner), version, config) {
            (Claim::OfAnother, ..) => return None,
            (Claim::OfNobody, ..) => of_nobody(is_named),
            (Claim::Mine, Err(error), _) => ClusterFound::Unread(format!(
                "whether it is a data directory is unknown: {error}"
            )),
            (Claim::Mine, Ok(_), Err(error)) => ClusterFound::Unread(error.to_string()),
            (Claim::Mine, Ok(_), Ok(config)) if config.iter().flatten().all(is_owner) => {
                self.read(cluster, notes)
            }
            (Claim::Mine, Ok(_), Ok(_)) => ClusterFound::Unread(
                "its configuration is neither root's nor its directory's owner's".to_owned(),
            ),
        };
        Some(Some(cluster.facts(found)))
    }

    fn read(&self, cluster: &ClusterPaths, notes: &mut Notes) -> ClusterFound {
        let files = InstanceFiles::own(self.root);
        let mut configuration = Configuration::default();
        for file in [&cluster.config, &cluster.data.join("postgresql.auto.conf")] {
            configuration.add(&files, file, notes);
        }
        if configuration.settings.is_empty() {
            return ClusterFound::Unread("its configuration could not be read".to_owned());
        }
        let mut unread = Notes::default();
        let mut text = |path: &Path| {
            let text = if_there(files.read_text(&path.to_string_lossy(), limit::POSTMASTER_OPTS));
            unread.keep(text).flatten().unwrap_or_default()
        };
        // Of Debian: an option with an `o` hands others to the server (pg_ctlcluster(1)).
        let options = text(&cluster.config.with_file_name("pg_ctl.conf"));
        let options = options
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'));
        let mut options = options.flat_map(|line| line.split(['=', '\'', '"', ' ']));
        let option = options.find(|word| word.starts_with('-') && word.contains('o'));
        let last_options = text(&cluster.data.join("postmaster.opts"));
        let options = postmaster_opts::settings(&postmaster_opts::arguments(&last_options));
        let sources = configuration.sources.clone();
        let mut found = ClusterFiles {
            configured: Configured::new(configuration, options),
            pg_ctl_option: option.map(str::to_owned),
            unread: unread.into_vec().pop(),
            answer: None,
            by_worker: None,
        };
        requested_by_settings(&found.configured.with(&[]), notes);
        if unclear(&found).is_none() && asks_for_pages(&found) {
            found.answer = self.ask.map(|ask| ask_of(&files, cluster, &found, ask));
            if matches!(found.answer, None | Some(StartAnswer::Unknown(_))) {
                found.by_worker =
                    by_worker(self.root, &files, &sources, &cluster.data, cluster.name());
            }
        }
        without_others(&mut found.configured);
        ClusterFound::Cluster(Box::new(found))
    }
}

/// What a program says of the next start of a cluster.
fn ask_of(
    files: &InstanceFiles,
    cluster: &ClusterPaths,
    found: &ClusterFiles,
    ask: &AskStart<'_>,
) -> StartAnswer<Bytes> {
    let directory = cluster.data.to_string_lossy();
    let version = files.version(&format!("{directory}/PG_VERSION"));
    let asked = version
        .map_err(|error| error.to_string())
        .and_then(|version| {
            let configured = Configured {
                options: Vec::new(),
                ..found.configured.clone()
            };
            let start = StartFiles {
                version: &version,
                data: &data_directory::read(files, &directory),
                configured: &configured,
            };
            Ok(ask(&start.question(StartProgram::Packaged)?))
        });
    asked.unwrap_or_else(StartAnswer::Unknown)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, SystemTime};

    use hugepage_assess::history::{Record, record};
    use hugepage_facts::InstanceKey;
    use hugepage_kernel::Pages;
    use hugepage_sizing::{StoppedDatabase, Wants};

    use super::*;
    use crate::{reading, stopped_needs, survey};

    fn write(tree: &tempfile::TempDir, path: &str, text: &str) {
        let path = tree.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A host with pages of 2 MB, and clusters with these settings in these directories.
    fn host(clusters: &[(&str, &str)]) -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        write(
            &tree,
            "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
            "0\n",
        );
        write(
            &tree,
            "proc/meminfo",
            "MemTotal: 8000000 kB\nHugepagesize: 2048 kB\n",
        );
        for (directory, settings) in clusters {
            write(&tree, &format!("{directory}/PG_VERSION"), "17\n");
            write(&tree, &format!("{directory}/postgresql.conf"), settings);
        }
        tree
    }

    /// The names of what does not run, each with why it is not counted, or its pages, and what is said beside it.
    fn found(tree: &tempfile::TempDir, given: &[&str], seen: &[Remembered]) -> Vec<String> {
        let root = &Root::at(tree.path());
        let given: Vec<_> = given.iter().map(PathBuf::from).collect();
        let mut snapshot = reading::read(root, &[], None);
        find_stopped(&mut snapshot, root, &given, seen, None);
        let shown = |one: &StoppedDatabase| {
            let wants = match &one.wants {
                Wants::Pages(pages) => format!("{pages} pages"),
                Wants::None(why) => why.to_string(),
                Wants::Unknown(why) => why.clone(),
            };
            let remark = one
                .remark
                .as_ref()
                .map_or_else(String::new, |remark| format!(" ({remark})"));
            format!("{}: {wants}{remark}", one.key)
        };
        let survey = survey::decide(&snapshot, 20);
        let mut found: Vec<_> = survey.stopped_clusters.iter().map(shown).collect();
        found.sort_unstable();
        found
    }

    fn seen(name: &str, pages: Option<u64>) -> Remembered {
        Remembered {
            key: InstanceKey {
                kind: "postgresql".to_owned(),
                uid: Some(26),
                name: name.to_owned(),
                ..InstanceKey::default()
            },
            page_size: None,
            pages_needed: pages.map(Pages),
            last_seen: SystemTime::UNIX_EPOCH + Duration::from_secs(1_764_000_000),
            boot_id: None,
            is_gone: false,
        }
    }

    const OFF: &str = "huge_pages = off\n";

    /// Debian's clusters with the word of each, those of other packages, and those that root tells, whatever starts them.
    #[test]
    fn where_stopped_clusters_are() {
        let tree = host(&[
            ("var/lib/pgsql/16/data", OFF),
            ("var/lib/pgsql/data", OFF),
            ("srv/told", OFF),
            ("srv/given", OFF),
            ("srv/nowhere", OFF),
        ]);
        for (name, start) in [
            ("auto", "auto\n"),
            ("manual", "# by hand\nmanual\n"),
            ("disabled", "disabled"),
        ] {
            let directory = format!("etc/postgresql/17/{name}");
            write(&tree, &format!("{directory}/start.conf"), start);
            write(
                &tree,
                &format!("{directory}/postgresql.conf"),
                &format!("data_directory = '/srv/{name}'\n{OFF}"),
            );
            write(&tree, &format!("srv/{name}/PG_VERSION"), "17\n");
        }
        write(
            &tree,
            "etc/hugepage-sidecar/postgresql-data",
            "# ours\n/srv/told/ # late\n",
        );
        assert_eq!(
            found(&tree, &["/srv/given", "/srv/none"], &[]),
            [
                "/srv/auto: huge_pages = off (start.conf: auto)",
                "/srv/disabled: huge_pages = off (start.conf: disabled)",
                "/srv/given: huge_pages = off",
                "/srv/manual: huge_pages = off (start.conf: manual)",
                "/srv/none: it is not a PostgreSQL data directory: it has no PG_VERSION",
                "/srv/told: huge_pages = off",
                "/var/lib/pgsql/16/data: huge_pages = off",
                "/var/lib/pgsql/data: huge_pages = off",
            ]
        );
    }

    /// What root names should count: no exit status says that all is known.
    #[test]
    fn of_no_service_account() {
        let cluster = ClusterPaths::in_directory(Path::new("/srv/x"));
        let pages = [true, false].map(|is_named| {
            let facts = cluster.facts(of_nobody(is_named));
            stopped_needs::cluster(&facts, None).wants.pages()
        });
        assert_eq!(pages, [None, Some(Pages(0))]);
    }

    /// A file system that is not mounted hides what lies on it.
    #[test]
    fn a_link_that_leads_to_nothing() {
        use std::os::unix::fs::symlink;
        let why = "a link on its path leads to nothing: a file system may not be mounted";
        for (link, name) in [
            ("var/lib/pgsql/17/data", "/var/lib/pgsql/17/data"),
            ("var/lib/pgsql/17", "/var/lib/pgsql/17/data"),
            ("pg", "/pg"),
        ] {
            let tree = host(&[]);
            let link = tree.path().join(link);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink("/srv/away", link).unwrap();
            let all = found(&tree, &[], &[]);
            let [one] = &all[..] else { panic!("{all:?}") };
            assert!(one.starts_with(&format!("{name}: ")), "{one}");
            assert!(name == "/pg" || one.ends_with(why), "{one}");
        }
    }

    /// Who can write the file could make root count what it likes.
    #[test]
    fn what_root_alone_can_tell() {
        use std::os::unix::fs::PermissionsExt;
        let tree = host(&[]);
        write(&tree, "etc/hugepage-sidecar/postgresql-data", "data\n");
        let path = "/etc/hugepage-sidecar/postgresql-data";
        assert_eq!(
            found(&tree, &[], &[]),
            [format!("{path}: {path} has \"data\", no absolute path")]
        );
        let file = tree.path().join("etc/hugepage-sidecar/postgresql-data");
        fs::set_permissions(file, fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(
            found(&tree, &[], &[]),
            [format!(
                "{path}: {path} is not read: others than root may write to it"
            )]
        );
    }

    /// What was seen counts as it did, unless it is found where stopped servers are, or is gone.
    #[test]
    fn what_was_seen_here() {
        let tree = host(&[("var/lib/pgsql/data", OFF), ("srv/mounted", OFF)]);
        let gone = Remembered {
            is_gone: true,
            ..seen("/srv/gone", Some(7))
        };
        let mut in_container = seen("/data", Some(9));
        in_container.key.container = Some("8.1-77".to_owned());
        let all = [
            seen("/var/lib/pgsql/data", Some(1)),
            seen("/srv/mounted", Some(2)),
            seen("/srv/absent", Some(3)),
            seen("/srv/off", Some(0)),
            seen("/srv/unknown", None),
            gone,
            in_container,
        ];
        let at = "(last seen 2025-11-24T16:00:00Z)";
        assert_eq!(
            found(&tree, &[], &all),
            [
                format!("/data in 8.1-77: 9 pages {at}"),
                format!("/srv/absent: 3 pages {at}"),
                format!("/srv/mounted: 2 pages {at}"),
                format!("/srv/off: it asked for none when it was last seen {at}"),
                format!("/srv/unknown: its need was unknown when it was last seen {at}"),
                "/var/lib/pgsql/data: huge_pages = off".to_owned(),
            ]
        );
    }

    /// Where nobody answers what a start asks for, and as long as nothing has changed.
    #[test]
    fn what_the_worker_saw() {
        let data = "var/lib/pgsql/17/data";
        let conf = format!("{data}/postgresql.conf");
        let tree = host(&[(data, "huge_pages = on\n")]);
        write(&tree, "proc/sys/kernel/hostname", "db1\n");
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let change = |at| {
            let file = fs::File::open(tree.path().join(&conf)).unwrap();
            file.set_modified(at).unwrap();
        };
        let with = |host: &str, directory: &str, pages: Option<u64>| {
            let mut one = Record {
                v: record::VERSION,
                recorded_at: "2025-11-24T16:00:00.000000Z".to_owned(),
                host: host.to_owned(),
                pages_needed: pages.map(Pages),
                ..Record::default()
            };
            one.instance.directory = directory.to_owned();
            let path = format!("{data}/pg_hugepages.history");
            write(&tree, &path, &one.to_line());
            found(&tree, &[], &[])
        };
        change(old);
        let name = format!("/{data}");
        let unknown = [format!(
            "{name}: unknown: only on the host itself a program is asked"
        )];
        let seen = [format!("{name}: 7 pages (last seen 2025-11-24T16:00:00Z)")];
        assert_eq!(with("db1", &name, Some(7)), seen);
        assert_eq!(with("db1", "/var/lib/pgsql/17/./data", Some(7)), seen);
        assert_eq!(with("db1", &name, None), unknown);
        // Of the original of a copy.
        assert_eq!(with("db2", &name, Some(7)), unknown);
        assert_eq!(with("db1", "/srv", Some(7)), unknown);
        change(SystemTime::now());
        assert_eq!(with("db1", &name, Some(7)), unknown);
        // It is said which options the last start had.
        change(old);
        write(
            &tree,
            &format!("{data}/postmaster.opts"),
            "postgres \"-c\" \"shared_buffers=1GB\"\n",
        );
        assert!(with("db1", &name, Some(7))[0].contains("its last start had"));
    }

    #[test]
    fn options_beside_debians_configuration() {
        for (options, found_there) in [
            ("pg_ctl_options = ''", "huge_pages = off"),
            (
                "# pg_ctl_options = '-o x'\npg_ctl_options = '-w -t 60'",
                "huge_pages = off",
            ),
            (
                "pg_ctl_options = '-o \"-c huge_pages=on\"'",
                "its pg_ctl.conf has -o, whose effect is not known here",
            ),
        ] {
            let tree = host(&[]);
            write(
                &tree,
                "etc/postgresql/17/a/postgresql.conf",
                &format!("data_directory = '/srv/a'\n{OFF}"),
            );
            write(&tree, "etc/postgresql/17/a/pg_ctl.conf", options);
            write(&tree, "srv/a/PG_VERSION", "17\n");
            assert_eq!(
                found(&tree, &[], &[]),
                [format!("/srv/a: {found_there}")],
                "{options}"
            );
        }
    }
}
