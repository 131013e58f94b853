//! PostgreSQL clusters that are configured on this host and not running: their locations, and the huge pages that their next
//! start asks for.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use hugepage_assess::assessment::Forecast;
use hugepage_assess::model::{HugePages, PoolFact, PoolState, requested_by_settings};
use hugepage_assess::pools;
use hugepage_assess::stopped_databases::{StoppedDatabase, Wants};
use hugepage_kernel::cgroups::cgroup::CgroupLimits;
use hugepage_kernel::postgresql::postgresql_conf::Configuration;
use hugepage_kernel::postgresql::postmaster_opts;
use hugepage_kernel::source::root::if_there;
use hugepage_kernel::stranger::limit;
use hugepage_kernel::{Bytes, InstanceFiles, Notes, PageSize, Pages, ReadError, Root};
use hugepage_start::StartAnswer;

use super::Survey;
use super::next_start::{AskStart, ServerFiles, StartProgram};
use super::postgresql::Configured;

/// A cluster that does not run.
#[derive(Clone, Debug)]
pub struct StoppedCluster {
    /// What `size` counts.
    pub database: StoppedDatabase,
    /// Whether systemd starts it at boot.
    pub starts_at_boot: bool,
    /// What a start would get of the pool as it is; `None` if its need is unknown, or if it needs no huge pages.
    pub forecast: Option<Forecast>,
}

/// The stopped clusters in the directories of Debian and Red Hat, in systemd units, and in `given`. `ask` answers what a start of
/// one asks for.
pub fn stopped_clusters(
    root: &Root,
    survey: &Survey,
    given: &[PathBuf],
    ask: Option<&AskStart<'_>>,
    notes: &mut Notes,
) -> Vec<StoppedCluster> {
    let running: BTreeSet<_> = survey.instances.iter().filter_map(|instance| instance.id.postgresql()?.inode).collect();
    let mut seen = BTreeSet::new();
    let mut stopped = Vec::new();
    for cluster in given.iter().map(|directory| ClusterPaths::in_directory(directory)).chain(candidates(root, notes)) {
        let data = cluster.data.to_string_lossy();
        let files = InstanceFiles::of_owner(root, &data);
        let version = files.owner(&format!("{data}/PG_VERSION"));
        let is_absent = version.as_ref().is_err_and(ReadError::is_not_found) && !given.contains(&cluster.data);
        let inode = files.inode(&data);
        if is_absent || inode.is_some_and(|inode| running.contains(&inode) || !seen.insert(inode)) {
            continue;
        }
        stopped.push(match version {
            Ok(_) => inspect(root, &cluster, survey, ask, notes),
            Err(error) if error.is_not_found() => {
                cluster.unknown("it is not a PostgreSQL data directory: it has no PG_VERSION".to_owned())
            }
            Err(error) => cluster.unknown(format!("whether it is a data directory is unknown: {error}")),
        });
    }
    stopped
}

/// The files of a cluster.
#[derive(Debug)]
struct ClusterPaths {
    data: PathBuf,
    /// The configuration file, if it is not in the data directory.
    config: Option<PathBuf>,
    /// Whether systemd starts it at boot.
    starts_at_boot: bool,
}

impl ClusterPaths {
    fn in_directory(data: &Path) -> Self {
        Self { data: data.to_owned(), config: None, starts_at_boot: false }
    }

    fn unknown(&self, why: String) -> StoppedCluster {
        self.stopped(None, Wants::Unknown(why), None)
    }

    fn stopped(&self, page_size: Option<PageSize>, wants: Wants, forecast: Option<Forecast>) -> StoppedCluster {
        let name = self.data.display().to_string();
        let database = StoppedDatabase { kind: "postgresql", name, page_size, wants };
        StoppedCluster { database, starts_at_boot: self.starts_at_boot, forecast }
    }
}

fn candidates(root: &Root, notes: &mut Notes) -> Vec<ClusterPaths> {
    let mut candidates = Vec::new();
    let enabled = list(root, "/etc/systemd/system/multi-user.target.wants", notes);
    let is_enabled = |unit: &str| enabled.iter().any(|name| name == unit);
    for version in list(root, "/etc/postgresql", notes) {
        for cluster in list(root, &format!("/etc/postgresql/{version}"), notes) {
            let config = PathBuf::from(format!("/etc/postgresql/{version}/{cluster}/postgresql.conf"));
            let mut configuration = Configuration::default();
            let directory = format!("/etc/postgresql/{version}/{cluster}");
            let mut files = InstanceFiles::of_owner(root, &directory);
            if files.owner(&directory).is_ok_and(|owner| owner.uid == 0) {
                files = InstanceFiles::of_account(root, "postgres");
            }
            configuration.add(&files, &config, notes);
            if let Some(data) = configuration.get("data_directory") {
                // Debian's unit starts the clusters that have the word `auto`.
                let start = root.read(&format!("{directory}/start.conf")).unwrap_or_default();
                let starts_at_boot =
                    is_enabled("postgresql.service") && start.lines().any(|line| line.trim() == "auto");
                candidates.push(ClusterPaths { data: data.into(), config: Some(config), starts_at_boot });
            }
        }
    }
    for version in list(root, "/var/lib/pgsql", notes) {
        let starts_at_boot = is_enabled(&format!("postgresql-{version}.service"));
        let data = format!("/var/lib/pgsql/{version}/data");
        candidates.push(ClusterPaths { starts_at_boot, ..ClusterPaths::in_directory(Path::new(&data)) });
    }
    let starts_at_boot = is_enabled("postgresql.service");
    candidates.push(ClusterPaths { starts_at_boot, ..ClusterPaths::in_directory(Path::new("/var/lib/pgsql/data")) });
    for directory in ["/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"] {
        for unit in list(root, directory, notes)
            .into_iter()
            .filter(|unit| unit.contains("postgres") && unit.ends_with(".service"))
        {
            let text = root.read(&format!("{directory}/{unit}")).unwrap_or_default();
            let data = text
                .lines()
                .filter_map(|line| line.trim().strip_prefix("Environment="))
                .find_map(|assignment| assignment.trim_matches('"').strip_prefix("PGDATA=").map(str::to_owned));
            // Skip templates: only their instances define %i.
            candidates.extend(data.filter(|data| data.starts_with('/') && !data.contains('%')).map(|data| {
                ClusterPaths { starts_at_boot: is_enabled(&unit), ..ClusterPaths::in_directory(Path::new(&data)) }
            }));
        }
    }
    candidates
}

/// The names in a directory, which need not exist.
fn list(root: &Root, directory: &str, notes: &mut Notes) -> Vec<String> {
    notes.keep(if_there(root.list(directory))).flatten().unwrap_or_default()
}

fn inspect(
    root: &Root,
    cluster: &ClusterPaths,
    survey: &Survey,
    ask: Option<&AskStart<'_>>,
    notes: &mut Notes,
) -> StoppedCluster {
    let config = cluster.config.clone().unwrap_or_else(|| cluster.data.join("postgresql.conf"));
    let files = InstanceFiles::of_owner(root, &cluster.data.to_string_lossy());
    let mut configuration = Configuration::default();
    for file in [&config, &cluster.data.join("postgresql.auto.conf")] {
        configuration.add(&files, file, notes);
    }
    if configuration.settings.is_empty() {
        return cluster.unknown("its configuration could not be read".to_owned());
    }
    let opts = cluster.data.join("postmaster.opts");
    let opts = files.read_text(&opts.to_string_lossy(), limit::POSTMASTER_OPTS).unwrap_or_default();
    let options = postmaster_opts::settings(&postmaster_opts::arguments(&opts));
    let configured = Configured { files: configuration, options };
    let settings = configured.with(configured.options.iter());
    let requested = requested_by_settings(|name| settings.get(name).map(|value| (*value).to_owned()), notes);
    let page_size = requested.huge_page_size.or(survey.default_page_size());
    let wants = match page_size {
        _ if requested.huge_pages == HugePages::Off => Wants::None("huge_pages = off"),
        _ if requested.never_in_huge_pages() => Wants::None("shared_memory_type = sysv"),
        None => Wants::Unknown("the size of huge pages is unknown".to_owned()),
        Some(page_size) => match shared_memory(&files, cluster, &configured, &opts, ask) {
            Ok(size) => Wants::Pages(page_size.pages_to_hold(size), "postgres -C"),
            Err(why) => Wants::Unknown(why),
        },
    };
    let forecast = wants.pages().filter(|pages| pages.0 > 0).zip(page_size).map(|(pages, size)| {
        Forecast::of_start(&requested, Some(size.times(pages)), &pool_found(survey, size), Pages(0))
    });
    cluster.stopped(requested.huge_page_size, wants, forecast)
}

/// The pool that a start finds. The cgroup in which it will be is not known.
pub(super) fn pool_found(survey: &Survey, size: PageSize) -> PoolState {
    let pool = pools::of_size(&survey.pools, size).map_or(PoolFact::Unknown, |row| PoolFact::Known(row.pool.clone()));
    let limits = Some(CgroupLimits::default());
    PoolState { huge_page_size: Some(size), pool, limits, nodes: None, lock_limit: None }
}

/// The size of shared memory that a start asks for; the error is why it is unknown. `opts`: the command line of the last start.
fn shared_memory(
    files: &InstanceFiles,
    cluster: &ClusterPaths,
    configured: &Configured,
    opts: &str,
    ask: Option<&AskStart<'_>>,
) -> Result<Bytes, String> {
    let ask = ask.ok_or("unknown: only on the host itself a program is asked")?;
    let directory = cluster.data.to_string_lossy();
    let version = files.version(&format!("{directory}/PG_VERSION")).map_err(|error| error.to_string())?;
    let program = opts.split(" \"").next().filter(|program| program.starts_with('/'));
    let server = ServerFiles {
        program: StartProgram::Stopped(program),
        version: &version,
        directory: &directory,
        files,
        configured,
    };
    match server.need(ask)? {
        StartAnswer::Starts(size) => Ok(size),
        StartAnswer::Refuses(why) => Err(format!("its next start would fail: {why}")),
        StartAnswer::Unknown(why) => Err(why),
    }
}
