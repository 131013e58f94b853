//! The metrics of a surveyed host with all its instances.

use hugepage_assess::assessment::Status;
use hugepage_assess::metrics::{InstanceMetrics, MetricsSnapshot, StoppedMetrics};
use hugepage_oracle::stopped::StoppedOracle;

use crate::status_row::status_row;
use crate::{Instance, Survey};

impl From<&Survey> for MetricsSnapshot {
    fn from(survey: &Survey) -> Self {
        // No user may raise an alert with a server of its own.
        let counted: Vec<_> = survey.instances.iter().collect();
        let reserve_percent = counted.first().map_or(0, |instance| instance.status.facts.reserve_percent);
        let sizings = survey.sizings(&survey.stopped_needs(), reserve_percent);
        let instances = counted.iter().map(|instance| InstanceMetrics {
            kind: instance.id.kind().to_string(),
            name: name(instance, &counted),
            // One number for the host in all outputs: where not all servers fit, it is that of those that do.
            status: Status {
                recommended: status_row(instance, &sizings).recommended_nr_hugepages,
                ..instance.status.clone()
            },
            page_tables: Some(instance.memory.page_tables),
        });
        Self {
            stopped: survey.stopped.iter().map(stopped_metrics).collect(),
            instances: instances.collect(),
            pools: survey.pools.clone(),
            meminfo: survey.meminfo.clone(),
        }
    }
}

fn stopped_metrics(stopped: &StoppedOracle) -> StoppedMetrics {
    let needed = stopped.wants.pages();
    StoppedMetrics {
        kind: stopped.kind.to_string(),
        name: stopped.name.clone(),
        state: stopped.state,
        severity: stopped.severity(),
        outlook: stopped.outlook(),
        needed,
        missing: stopped
            .forecast
            .as_ref()
            .and_then(|forecast| forecast.missing)
            .or(needed.filter(|pages| pages.0 == 0)),
    }
}

/// The name, made unique: containers often have their data directories at the same path, and a duplicate series makes the
/// whole text invalid.
fn name(instance: &Instance, all: &[&Instance]) -> String {
    let same: Vec<_> = all
        .iter()
        .filter(|other| (other.id.kind(), &other.id.name) == (instance.id.kind(), &instance.id.name))
        .collect();
    let name = &instance.id.name;
    if same.len() == 1 {
        return name.clone();
    }
    let identifier = |instance: &Instance| instance.id.postgresql()?.system_identifier.clone();
    let alike = same.iter().filter(|other| identifier(other) == identifier(instance)).count();
    match identifier(instance) {
        Some(identifier) if alike == 1 => format!("{name} ({identifier})"),
        _ => format!("{name} (process {})", instance.id.pid),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::survey;
    use hugepage_kernel::Root;

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
        let snapshot = MetricsSnapshot::from(&survey(&Root::at(tree.path()), 20));
        assert_eq!(snapshot.meminfo.and_then(|meminfo| meminfo.page_tables), Some(hugepage_kernel::Bytes(1_024_000)));
        snapshot.instances.into_iter().map(|instance| format!("{} {}", instance.kind, instance.name)).collect()
    }

    #[test]
    fn no_two_instances_have_the_same_name() {
        let tree = host(&[(10, "/pg/15"), (20, "/data"), (30, "/data")]);
        assert_eq!(
            names(&tree),
            ["postgresql /pg/15", "postgresql /data (process 20)", "postgresql /data (process 30)"]
        );
    }
}
