//! Where PostgreSQL clusters lie that do not run, and which files each has.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use hugepage_facts::{ClusterFacts, ClusterFound, escape};
use hugepage_kernel::{Configuration, InstanceFiles, Notes, ReadError, Root, limit};
use hugepage_oracle::stopped::{Claim, ClaimOf};

/// Where Debian has a directory for each version, with the configurations of its clusters; and EDB on Debian.
pub(super) const DEBIAN: [&str; 2] = ["/etc/postgresql", "/etc/edb-as"];
/// Where other packages have `data`, or `VERSION/data`.
pub(super) const PACKAGES: [&str; 10] = [
    "/var/lib/pgsql",
    "/var/lib/postgresql",
    "/var/lib/edb",
    "/var/lib/postgres",
    "/var/lib/pgpro",
    "/usr/local/pgsql",
    "/opt/PostgreSQL",
    "/var/opt/gitlab/postgresql",
    "/opt/edb",
    "/pg",
];

/// The files of a cluster.
#[derive(Debug)]
pub(super) struct ClusterPaths {
    pub data: PathBuf,
    /// The configuration file.
    pub config: PathBuf,
    /// Whether Debian's directory has its configuration, so that it is one, wherever its data is now.
    pub is_configured: bool,
    /// The word in its start.conf: `auto`, `manual`, `disabled` (pg_ctlcluster(1)).
    start: Option<String>,
}

impl ClusterPaths {
    pub fn in_directory(data: &Path) -> Self {
        Self {
            data: data.to_owned(),
            config: data.join("postgresql.conf"),
            is_configured: false,
            start: None,
        }
    }

    /// All of a place: Debian's directory or that of another package, or one cluster. Of those that another process reads, none.
    pub fn of_place(
        root: &Root,
        place: &str,
        is_mine: ClaimOf<'_>,
        notes: &mut Notes,
    ) -> Result<Vec<Self>, ReadError> {
        let mut clusters = Vec::new();
        if DEBIAN.contains(&place) {
            for version in list(root, place)? {
                for name in list(root, &format!("{place}/{version}"))? {
                    let directory = format!("{place}/{version}/{name}");
                    // As PgCommon.pm has it, and then the usual place.
                    let linked = root.read_link(&format!("{directory}/pgdata")).ok();
                    let own = || {
                        root.exists(&format!("{directory}/PG_VERSION"))
                            .then(|| directory.clone())
                    };
                    let usual = linked
                        .or_else(own)
                        .unwrap_or_else(|| directory.replacen("/etc", "/var/lib", 1));
                    let found = Self::of_configuration(root, &directory, usual, is_mine, notes);
                    clusters.extend(found.map(|found| Self {
                        is_configured: true,
                        start: start_of(root, &directory),
                        ..found
                    }));
                }
            }
        } else if PACKAGES.contains(&place) {
            for name in list(root, place)? {
                clusters.push(Self::in_directory(
                    &Path::new(place).join(name).join("data"),
                ));
            }
            clusters.push(Self::in_directory(&Path::new(place).join("data")));
        } else if root.exists(&format!("{place}/postgresql.conf")) {
            // -D or PGDATA is the data directory, unless a configuration there names another one (SelectConfigFiles in guc.c).
            let found = Self::of_configuration(root, place, place.to_owned(), is_mine, notes);
            clusters.extend(found);
        } else {
            clusters.push(Self::in_directory(Path::new(place)));
        }
        Ok(clusters)
    }

    /// Of a directory with the configuration; `usual`: the data directory if that names none. `None` if the configuration is neither
    /// root's nor this process's to read.
    fn of_configuration(
        root: &Root,
        directory: &str,
        usual: String,
        is_mine: ClaimOf<'_>,
        notes: &mut Notes,
    ) -> Option<Self> {
        let config = PathBuf::from(format!("{directory}/postgresql.conf"));
        let files = InstanceFiles::own(root);
        let owner = files.owner(&config.to_string_lossy()).ok();
        let mut configuration = Configuration::default();
        let owners = files.owners(&config.to_string_lossy());
        match is_mine(owner) {
            // What one user lays in another's way is not read as either of them.
            _ if owners.is_ok_and(|owners| owners.len() > 1) => {}
            Claim::OfAnother if owner != Some(0) => return None,
            Claim::OfNobody => {}
            _ => configuration.add(&files, &config, notes),
        }
        let data = configuration
            .get("data_directory")
            .map_or(usual, str::to_owned);
        Some(Self {
            data: data.into(),
            config,
            is_configured: false,
            start: None,
        })
    }

    /// The data directory, without a slash at its end, as a name.
    pub fn name(&self) -> String {
        escape::name(self.data.components().as_path().display().to_string())
    }

    /// What is there, by its name.
    pub fn facts(&self, found: ClusterFound) -> ClusterFacts {
        ClusterFacts {
            name: self.name(),
            start: self.start.clone(),
            found,
        }
    }
}

/// The word in the start.conf of a directory of Debian's; `None` if there is none, or it can't be read.
fn start_of(root: &Root, directory: &str) -> Option<String> {
    let path = format!("{directory}/start.conf");
    let text = InstanceFiles::own(root).read_text(&path, limit::POSTMASTER_OPTS);
    let word = |line: &str| {
        Some(
            line.split('#')
                .next()?
                .split_whitespace()
                .next()?
                .to_owned(),
        )
    };
    text.ok()?.lines().find_map(word)
}

/// The names in a directory; none if it does not exist, or is something else.
fn list(root: &Root, directory: &str) -> Result<Vec<String>, ReadError> {
    match root.list_if_there(directory) {
        Err(ReadError::Io { source, .. }) if source.kind() == ErrorKind::NotADirectory => {
            Ok(Vec::new())
        }
        found => found,
    }
}

/// Of an owner that is no service account. What root names should count.
pub fn of_nobody(is_named: bool) -> ClusterFound {
    if is_named {
        ClusterFound::Unread("its owner is no service account".to_owned())
    } else {
        ClusterFound::OfNobody
    }
}
