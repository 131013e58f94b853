//! PostgreSQL clusters that are configured on this host and not running: their locations, and the huge pages that
//! `postgres -C` reports for them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use hugepage_assess::model::requested_by_settings;
use hugepage_assess::stopped_databases::{StoppedDatabase, Wants};
use hugepage_host::Survey;
use hugepage_kernel::postgresql::postgresql_conf::Configuration;
use hugepage_kernel::postgresql::postmaster_opts;
use hugepage_kernel::stranger::limit;
use hugepage_kernel::{Bytes, InstanceFiles, Notes, PageSize, Root};
use hugepage_start::{StartAnswer, StartQuestion, majors};

use crate::server_program::{ANSWER_TIMEOUT, child, packaged, trust};

/// The stopped clusters in the directories of Debian and Red Hat, in systemd units, and in `given`.
pub fn clusters(root: &Root, survey: &Survey, given: &[PathBuf], notes: &mut Notes) -> Vec<StoppedDatabase> {
    let running: BTreeSet<String> = survey
        .instances
        .iter()
        .filter_map(|instance| Some(canonical(root, instance.id.postgresql()?.directory.as_deref()?)))
        .collect();
    let mut seen = BTreeSet::new();
    let mut stopped = Vec::new();
    for cluster in given.iter().map(|directory| ClusterPaths::in_directory(directory)).chain(candidates(root, notes)) {
        let data = cluster.data.to_string_lossy();
        let directory = canonical(root, &data);
        let is_cluster = InstanceFiles::of_owner(root, &data).exists(&format!("{data}/PG_VERSION"));
        if given.contains(&cluster.data) && !is_cluster {
            notes.add(format!("\"{}\" is not a PostgreSQL data directory: no PG_VERSION", cluster.data.display()));
        }
        if is_cluster && !running.contains(&directory) && seen.insert(directory) {
            stopped.push(inspect(root, &cluster, survey.default_page_size(), notes));
        }
    }
    stopped
}

/// The files of a cluster.
#[derive(Debug)]
struct ClusterPaths {
    data: PathBuf,
    /// The configuration file, if it is not in the data directory.
    config: Option<PathBuf>,
}

impl ClusterPaths {
    fn in_directory(data: &Path) -> Self {
        Self { data: data.to_owned(), config: None }
    }
}

fn canonical(root: &Root, directory: &str) -> String {
    InstanceFiles::of_owner(root, directory).canonical(directory).unwrap_or_else(|| directory.to_owned())
}

fn candidates(root: &Root, notes: &mut Notes) -> Vec<ClusterPaths> {
    let mut candidates = Vec::new();
    for version in list(root, "/etc/postgresql") {
        for cluster in list(root, &format!("/etc/postgresql/{version}")) {
            let config = PathBuf::from(format!("/etc/postgresql/{version}/{cluster}/postgresql.conf"));
            let mut configuration = Configuration::default();
            let directory = format!("/etc/postgresql/{version}/{cluster}");
            let mut files = InstanceFiles::of_owner(root, &directory);
            if files.owner(&directory).is_ok_and(|owner| owner.uid == 0) {
                files = InstanceFiles::of_account(root, "postgres");
            }
            configuration.add(&files, &config, notes);
            if let Some(data) = configuration.get("data_directory") {
                candidates.push(ClusterPaths { data: data.into(), config: Some(config) });
            }
        }
    }
    for version in list(root, "/var/lib/pgsql") {
        candidates.push(ClusterPaths::in_directory(Path::new(&format!("/var/lib/pgsql/{version}/data"))));
    }
    candidates.push(ClusterPaths::in_directory(Path::new("/var/lib/pgsql/data")));
    for directory in ["/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"] {
        for unit in
            list(root, directory).into_iter().filter(|unit| unit.contains("postgres") && unit.ends_with(".service"))
        {
            let text = root.read(&format!("{directory}/{unit}")).unwrap_or_default();
            let data = text
                .lines()
                .filter_map(|line| line.trim().strip_prefix("Environment="))
                .find_map(|assignment| assignment.trim_matches('"').strip_prefix("PGDATA=").map(str::to_owned));
            // Skip templates: only their instances define %i.
            candidates.extend(
                data.filter(|data| data.starts_with('/') && !data.contains('%'))
                    .map(|data| ClusterPaths::in_directory(Path::new(&data))),
            );
        }
    }
    candidates
}

fn list(root: &Root, directory: &str) -> Vec<String> {
    root.list(directory).unwrap_or_default()
}

fn inspect(
    root: &Root,
    cluster: &ClusterPaths,
    default_page_size: Option<PageSize>,
    notes: &mut Notes,
) -> StoppedDatabase {
    let down = |page_size, wants| StoppedDatabase {
        kind: "postgresql",
        name: cluster.data.display().to_string(),
        page_size,
        wants,
    };
    let config = cluster.config.clone().unwrap_or_else(|| cluster.data.join("postgresql.conf"));
    let mut configuration = Configuration::default();
    let files = InstanceFiles::of_owner(root, &cluster.data.to_string_lossy());
    for file in [&config, &cluster.data.join("postgresql.auto.conf")] {
        configuration.add(&files, file, notes);
    }
    if configuration.settings.is_empty() {
        return down(None, Wants::Unknown("its configuration could not be read".to_owned()));
    }
    let requested = requested_by_settings(|name| configuration.get(name).map(str::to_owned), notes);
    if requested.huge_pages == hugepage_assess::model::HugePages::Off {
        return down(requested.huge_page_size, Wants::None("huge_pages = off"));
    }
    if requested.never_in_huge_pages() {
        return down(requested.huge_page_size, Wants::None("shared_memory_type = sysv"));
    }
    let page_size = requested.huge_page_size.or(default_page_size);
    let wants = match (shared_memory(root, &files, cluster, &config, default_page_size), page_size) {
        (Ok(size), Some(page_size)) => Wants::Pages(page_size.pages_to_hold(size), "postgres -C"),
        (Ok(_), None) => Wants::Unknown("the size of huge pages is unknown".to_owned()),
        (Err(why), _) => Wants::Unknown(why),
    };
    down(requested.huge_page_size, wants)
}

/// The size that the cluster's program tells, run as the owner of the cluster. PostgreSQL 15 and later tell it for a stopped
/// server, without allocating memory or changing files. The error is why it is unknown.
#[expect(clippy::disallowed_methods, reason = "whether a program exists")]
fn shared_memory(
    root: &Root,
    files: &InstanceFiles,
    cluster: &ClusterPaths,
    config: &Path,
    default_page_size: Option<PageSize>,
) -> Result<Bytes, String> {
    if !root.is_live() {
        return Err("unknown: postgres -C runs only on the host itself".to_owned());
    }
    let inside = |name: &str| cluster.data.join(name).to_string_lossy().into_owned();
    let version = files.version(&inside("PG_VERSION")).map_err(|error| error.to_string())?;
    let major: u32 = version.parse().map_err(|_| format!("its PG_VERSION is \"{version}\""))?;
    if major < majors::FIRST_MAJOR {
        return Err(format!(
            "PostgreSQL {major} reports its need only while running: start it, or check its shared_buffers"
        ));
    }
    let account = trust::owner_of(&cluster.data)?;
    let me = rustix::process::geteuid();
    if !me.is_root() && me != account.uid {
        return Err(format!(
            "only root and the owner of the cluster (user {}) can run postgres -C",
            account.uid.as_raw()
        ));
    }
    trust::check_configuration(config, account)?;
    let opts = files.read_text(&inside("postmaster.opts"), limit::POSTMASTER_OPTS).unwrap_or_default();
    let last_started = opts.split(" \"").next().filter(|program| program.starts_with('/')).map(PathBuf::from);
    let program = last_started.into_iter().chain(packaged(major)).find(|path| path.is_file());
    let program = program.ok_or_else(|| format!("no postgres program of version {major} was found"))?;

    let program = trust::check_program(&program, account)?;

    // Settings of the last start's command line, and Debian's separate configuration file.
    let mut settings = vec![("config_file", config.into())];
    let options = postmaster_opts::settings(&postmaster_opts::arguments(&opts));
    let passed = options.iter().filter(|(name, _)| name != "data_directory" && name != "config_file");
    settings.extend(passed.map(|(name, value)| (name.as_str(), value.into())));
    let question =
        StartQuestion { major, arguments: &[], data: &cluster.data, settings, stand_in: None, default_page_size };
    match question.ask(|arguments| child::ending(child::run(&program, arguments, account, ANSWER_TIMEOUT))) {
        StartAnswer::Starts(size) => Ok(size),
        StartAnswer::Refuses(why) | StartAnswer::Unknown(why) => Err(format!("postgres -C failed: {why}")),
    }
}
