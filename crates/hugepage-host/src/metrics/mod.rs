//! The metrics of a surveyed host with all its instances.
//!
//! Each metric is defined once, in [`definitions`]: its name, its HELP, and the source of its value. All are gauges. A metric of
//! a state has a series for each possible state, 1 for the present one. The result is OpenMetrics that node_exporter's textfile
//! collector can also read. That knows only the older text format, which has no types for infos and sets of states. Unknown
//! values have no sample.

mod definitions;
mod openmetrics;

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use hugepage_assess::assessment::find::MIN_WARNING_SIZE;
use hugepage_assess::assessment::page_tables::PageTables;
use hugepage_assess::assessment::{Outlook, Severity, Status};
use hugepage_assess::model::Landing;
use hugepage_assess::pools::PoolRow;
use hugepage_kernel::Pages;
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_oracle::stopped::StoppedOracle;
use hugepage_oracle::stopped_state::{StoppedState, severity};

use crate::escape;
use crate::status_row::status_row;
use crate::{StoppedCluster, Survey};

/// A host and its instances at one moment.
#[derive(Clone, Debug)]
pub struct MetricsSnapshot {
    /// The instances.
    pub instances: Vec<InstanceMetrics>,
    /// Instances that do not run.
    pub stopped: Vec<StoppedMetrics>,
    /// The pools of all page sizes, and the nodes' shares of them.
    pub pools: Vec<PoolRow>,
    /// The host's memory; `None` if it could not be read.
    pub meminfo: Option<Meminfo>,
    /// The instances whose shared memory could not be inspected, and one for each user whose files were not read.
    pub uninspected: u64,
    /// The time that the survey took; `None` for captured files.
    pub survey_duration: Option<Duration>,
}

/// One instance of a database system.
#[derive(Clone, Debug)]
pub struct InstanceMetrics {
    /// The product: `postgresql`, `oracle`.
    pub kind: String,
    /// PostgreSQL's data directory, Oracle's SID.
    pub name: String,
    /// The assessment.
    pub status: Status,
    /// The page tables of its processes.
    pub page_tables: PageTables,
    /// When its history has the last loss of huge pages; `None` without one.
    pub last_regression: Option<SystemTime>,
}

/// An instance that is configured and does not run: an Oracle instance of oratab.
#[derive(Clone, Debug)]
pub struct StoppedMetrics {
    /// As of [`InstanceMetrics`], also the next one.
    pub kind: String,
    /// The SID.
    pub name: String,
    /// `stopped`, or `failed` if its last start failed.
    pub state: StoppedState,
    /// How severe that is.
    pub severity: Severity,
    /// What its next start would get.
    pub outlook: Outlook,
    /// The huge pages that its next start needs; 0 if none, `None` if unknown.
    pub needed: Option<Pages>,
    /// The needed pages that the pool could not give it now.
    pub missing: Option<Pages>,
}

/// The text in OpenMetrics 1.0, with `# EOF` at its end.
pub fn text(mut snapshot: MetricsSnapshot) -> String {
    make_unique(snapshot.instances.iter_mut().map(|instance| (&instance.kind, &mut instance.name)));
    make_unique(snapshot.stopped.iter_mut().map(|stopped| (&stopped.kind, &mut stopped.name)));
    definitions::families(&snapshot).text()
}

/// Escapes the names, and numbers those that are then equal, as containers have them: a duplicate series makes the whole text invalid.
fn make_unique<'a>(names: impl Iterator<Item = (&'a String, &'a mut String)>) {
    let mut seen = BTreeSet::new();
    for (kind, name) in names {
        let escaped = escape::lines(name);
        let numbered = (2..).map(|number| format!("{escaped} ({number})"));
        let mut candidates = std::iter::once(escaped.clone()).chain(numbered);
        *name = candidates.find(|name| seen.insert((kind, name.clone()))).unwrap_or_default();
    }
}

impl From<&Survey> for MetricsSnapshot {
    fn from(survey: &Survey) -> Self {
        let sizings = survey.sizings();
        let instances = survey.instances.iter().map(|instance| InstanceMetrics {
            kind: instance.id.kind(),
            name: instance.id.name.clone(),
            // One number for the host in all outputs: where not all servers fit, it is that of those that do.
            status: Status {
                recommended: status_row(instance, &sizings).recommended_nr_hugepages,
                ..instance.status.clone()
            },
            page_tables: instance.memory.page_tables,
            last_regression: None,
        });
        let clusters = survey.host.stopped_clusters.found.iter().map(StoppedMetrics::from);
        Self {
            stopped: survey.host.stopped.iter().map(stopped_metrics).chain(clusters).collect(),
            instances: instances.collect(),
            pools: survey.host.pools.clone(),
            meminfo: survey.host.meminfo.clone(),
            uninspected: (survey.host.unread.len()
                + survey.instances.iter().filter(|one| one.landed_in() == Landing::Unknown).count())
                as u64,
            survey_duration: None,
        }
    }
}

fn stopped_metrics(stopped: &StoppedOracle) -> StoppedMetrics {
    let (needed, missing) = (stopped.wants.pages(), stopped.forecast.as_ref().and_then(|forecast| forecast.missing));
    StoppedMetrics {
        kind: stopped.kind.to_string(),
        name: stopped.name.clone(),
        state: stopped.state,
        severity: stopped.severity(),
        outlook: stopped.outlook(),
        needed,
        missing: missing.or(needed.filter(|pages| pages.0 == 0)),
    }
}

impl From<&StoppedCluster> for StoppedMetrics {
    fn from(stopped: &StoppedCluster) -> Self {
        let StoppedCluster { database, starts_at_boot, forecast } = stopped;
        let outlook = forecast.as_ref().map(|forecast| forecast.outlook);
        // As for one that runs, base pages are no warning if they are few.
        let size = forecast.as_ref().and_then(|forecast| Some(forecast.huge_page_size?.times(database.wants.pages()?)));
        let matters = outlook == Some(Outlook::Fails) || size.is_some_and(|size| size >= MIN_WARNING_SIZE);
        Self {
            kind: database.kind.to_string(),
            name: database.name.clone(),
            state: StoppedState::Stopped,
            severity: severity(StoppedState::Stopped, *starts_at_boot && matters, outlook),
            outlook: outlook.unwrap_or(if database.wants.pages().is_some() { Outlook::Base } else { Outlook::Unknown }),
            needed: database.wants.pages(),
            missing: forecast.as_ref().and_then(|forecast| forecast.missing),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::postgresql::requested_by_settings;
    use crate::stopped_clusters::pool_found;
    use crate::{Snapshot, survey};
    use hugepage_assess::assessment::{Forecast, Severity};
    use hugepage_kernel::{Notes, PageSize, Pages, Root};
    use hugepage_sizing::Wants;

    /// A host with a postmaster for each pair of pid and data directory, its shared memory in base pages.
    fn host(servers: &[(i32, &str)]) -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        let meminfo = "MemTotal: 16777216 kB\nPageTables: 1000 kB\nHugepagesize: 2048 kB\n";
        fs::create_dir_all(tree.path().join("proc")).unwrap();
        fs::write(tree.path().join("proc/meminfo"), meminfo).unwrap();
        for (pid, directory) in servers {
            let process = tree.path().join(format!("proc/{pid}"));
            fs::create_dir_all(&process).unwrap();
            fs::write(process.join("cmdline"), format!("/usr/bin/postgres\0-D\0{directory}\0")).unwrap();
            fs::write(process.join("status"), "PPid:\t1\nVmPTE:\t100 kB\n").unwrap();
            let maps = "7f0000000000-7f0040000000 rw-s 00000000 00:01 1028 /dev/zero (deleted)\n";
            fs::write(process.join("maps"), maps).unwrap();
        }
        tree
    }

    fn names(tree: &tempfile::TempDir) -> Vec<String> {
        let mut snapshot = MetricsSnapshot::from(&survey(&Root::at(tree.path()), 20));
        make_unique(snapshot.instances.iter_mut().map(|instance| (&instance.kind, &mut instance.name)));
        assert_eq!(snapshot.meminfo.and_then(|meminfo| meminfo.page_tables), Some(hugepage_kernel::Bytes(1_024_000)));
        snapshot.instances.into_iter().map(|instance| format!("{} {}", instance.kind, instance.name)).collect()
    }

    #[test]
    fn no_two_instances_have_the_same_name() {
        let tree = host(&[(10, "/pg/15"), (20, "/data"), (30, "/data")]);
        assert_eq!(names(&tree), ["postgresql /pg/15", "postgresql /data", "postgresql /data (2)"]);
    }

    /// Debian's clusters, those of a unit and those of Red Hat's packages; a pool that is too small for what starts at boot.
    #[test]
    fn stopped_clusters_that_start_at_boot() {
        let tree = host(&[]);
        let pool = tree.path().join("sys/kernel/mm/hugepages/hugepages-2048kB");
        fs::create_dir_all(&pool).unwrap();
        for file in ["nr_hugepages", "free_hugepages", "resv_hugepages", "surplus_hugepages", "nr_overcommit_hugepages"]
        {
            fs::write(pool.join(file), "0\n").unwrap();
        }
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
        let mut found = snapshot.host.stopped_clusters.found.clone();
        found.sort_by_key(|cluster| cluster.database.name.clone());
        let starts: Vec<_> = found.iter().map(|one| (one.database.name.as_str(), one.starts_at_boot)).collect();
        let expected = [("/srv/auto", true), ("/srv/manual", false)];
        assert_eq!(starts[..2], expected);
        assert_eq!(starts[2..], [("/var/lib/pgsql/15/data", false), ("/var/lib/pgsql/16/data", true)]);

        // Nobody is asked what they need.
        let metrics = StoppedMetrics::from(&found[0]);
        assert_eq!((metrics.severity, metrics.outlook, metrics.needed), (Severity::Notice, Outlook::Unknown, None));
        let asks = |setting: &str| {
            requested_by_settings(|name| (name == "huge_pages").then(|| setting.to_owned()), &mut Notes::default())
        };
        let size = PageSize::from_kib(2048).unwrap();
        let pool_state = pool_found(&snapshot.host, size);
        for (index, setting, pages, severity) in [
            (0, "on", 70, Severity::Warning),
            (1, "on", 70, Severity::Notice),
            (0, "try", 70, Severity::Notice),
            (0, "try", 700, Severity::Warning),
        ] {
            let (cluster, pages) = (&mut found[index], Pages(pages));
            cluster.database.wants = Wants::Pages(pages, "postgres -C".into());
            cluster.forecast = Some(Forecast::of_start(&asks(setting), Some(size.times(pages)), &pool_state, Pages(0)));
            let metrics = StoppedMetrics::from(&*cluster);
            assert_eq!((metrics.severity, metrics.needed), (severity, Some(pages)), "{setting} {metrics:?}");
        }
    }
}
