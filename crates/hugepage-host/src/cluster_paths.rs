//! Where PostgreSQL clusters lie that do not run, and which files each has.

use std::path::{Path, PathBuf};

use hugepage_kernel::postgresql::postgresql_conf::Configuration;
use hugepage_kernel::source::root::if_there;
use hugepage_kernel::stranger::limit;
use hugepage_kernel::{InstanceFiles, Notes, PageSize, Root};
use hugepage_sizing::{StoppedDatabase, Wants};

/// Where Debian has a directory for each version, with the configurations of its clusters.
pub(super) const DEBIAN: &str = "/etc/postgresql";
/// Where other packages have `data`, or `VERSION/data`.
pub(super) const PACKAGES: [&str; 8] = [
    "/var/lib/pgsql",
    "/var/lib/postgresql",
    "/var/lib/edb",
    "/var/lib/postgres",
    "/var/lib/pgpro",
    "/usr/local/pgsql",
    "/opt/PostgreSQL",
    "/var/opt/gitlab/postgresql",
];

/// The files of a cluster.
#[derive(Debug)]
pub(super) struct ClusterPaths {
    pub data: PathBuf,
    /// The configuration file.
    pub config: PathBuf,
    /// How it is started: `auto`, `manual`, `disabled` (pg_ctlcluster(1)).
    pub start: String,
}

impl ClusterPaths {
    pub fn in_directory(data: &Path) -> Self {
        Self { data: data.to_owned(), config: data.join("postgresql.conf"), start: String::new() }
    }

    /// All of a place: Debian's directory or that of another package, or that of a unit or of one cluster.
    pub fn of_place(root: &Root, place: &str, notes: &mut Notes) -> Vec<Self> {
        if place == DEBIAN {
            let mut clusters = Vec::new();
            for version in list(root, place, notes) {
                for name in list(root, &format!("{place}/{version}"), notes) {
                    let directory = format!("{place}/{version}/{name}");
                    // As PgCommon.pm has it, and then the usual place.
                    let linked = root.read_link(&format!("{directory}/pgdata")).ok();
                    let own = || root.exists(&format!("{directory}/PG_VERSION")).then(|| directory.clone());
                    let usual = linked.or_else(own).unwrap_or_else(|| format!("/var/lib/postgresql/{version}/{name}"));
                    clusters.push(Self::of_configuration(root, &directory, usual, notes));
                }
            }
            return clusters;
        }
        if PACKAGES.contains(&place) {
            let names = list(root, place, notes).into_iter().map(|name| name + "/data").chain(["data".to_owned()]);
            return names.map(|name| Self::in_directory(&Path::new(place).join(name))).collect();
        }
        vec![match root.exists(&format!("{place}/postgresql.conf")) {
            // -D or PGDATA is the data directory, unless a configuration there names another one (SelectConfigFiles in guc.c).
            // Only pg_ctlcluster heeds start.conf.
            true => Self { start: String::new(), ..Self::of_configuration(root, place, place.to_owned(), notes) },
            false => Self::in_directory(Path::new(place)),
        }]
    }

    /// Of a directory with the configuration; `usual`: the data directory if that names none.
    fn of_configuration(root: &Root, directory: &str, usual: String, notes: &mut Notes) -> Self {
        let config = PathBuf::from(format!("{directory}/postgresql.conf"));
        let files = InstanceFiles::own(root);
        let mut configuration = Configuration::default();
        configuration.add(&files, &config, notes);
        let start = files.read_text(&format!("{directory}/start.conf"), limit::POSTMASTER_OPTS).unwrap_or_default();
        let word = start.lines().find_map(|line| line.split('#').next()?.split_whitespace().next());
        let start = word.unwrap_or_default().to_owned();
        let data = configuration.get("data_directory").map_or(usual, str::to_owned);
        Self { data: data.into(), config, start }
    }

    pub fn unknown(&self, why: String) -> StoppedDatabase {
        self.stopped(None, Wants::Unknown(why))
    }

    pub fn stopped(&self, page_size: Option<PageSize>, wants: Wants) -> StoppedDatabase {
        // Without a slash at its end.
        let name = self.data.components().as_path().display().to_string();
        StoppedDatabase { kind: "postgresql".into(), name, page_size, wants, is_manual: self.start == "manual" }
    }
}

/// The names in a directory, which need not exist.
fn list(root: &Root, directory: &str, notes: &mut Notes) -> Vec<String> {
    notes.keep(if_there(root.list(directory))).flatten().unwrap_or_default()
}
