//! The metrics of a surveyed host with all its instances.
//!
//! Each metric is defined once, in [`definitions`]: its name, its HELP, and the source of its value. All are gauges. A metric of
//! a state has a series for each possible state, 1 for the present one. The result is OpenMetrics that node_exporter's textfile
//! collector can also read. That knows only the older text format, which has no types for infos and sets of states. Unknown
//! values have no sample.

mod definitions;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::time::{Duration, SystemTime};

use hugepage_assess::assessment::Status;
use hugepage_assess::assessment::page_tables::PageTables;
use hugepage_assess::model::Landing;
use hugepage_assess::pools::PoolRow;
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_oracle::stopped::StoppedOracle;

use crate::Survey;
use crate::escape;

/// A host and its instances at one moment.
#[derive(Clone, Debug)]
pub struct MetricsSnapshot {
    /// The instances.
    pub instances: Vec<InstanceMetrics>,
    /// The Oracle instances of oratab that do not run.
    pub stopped: Vec<StoppedOracle>,
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

/// The text in OpenMetrics 1.0, with `# EOF` at its end.
pub fn text(mut snapshot: MetricsSnapshot) -> String {
    make_unique(snapshot.instances.iter_mut().map(|instance| (instance.kind.clone(), &mut instance.name)));
    make_unique(snapshot.stopped.iter_mut().map(|stopped| (stopped.kind.to_string(), &mut stopped.name)));
    definitions::families(&snapshot).text()
}

/// Escapes the names, and numbers those that are then equal, as containers have them: a duplicate series makes the whole text invalid.
fn make_unique<'a>(names: impl Iterator<Item = (String, &'a mut String)>) {
    let mut seen = BTreeSet::new();
    for (kind, name) in names {
        let escaped = escape::lines(name);
        let numbered = (2..).map(|number| format!("{escaped} ({number})"));
        let mut candidates = std::iter::once(escaped.clone()).chain(numbered);
        *name = candidates.find(|name| seen.insert((kind.clone(), name.clone()))).unwrap_or_default();
    }
}

impl From<&Survey> for MetricsSnapshot {
    fn from(survey: &Survey) -> Self {
        let sizings = survey.sizings();
        let instances = survey.instances.iter().map(|instance| InstanceMetrics {
            kind: instance.id.kind(),
            name: instance.id.name.clone(),
            // One number for the host in all outputs: where not all servers fit, it is that of those that do.
            status: Status { recommended: instance.recommended(&sizings), ..instance.status.clone() },
            page_tables: instance.memory.page_tables,
            last_regression: None,
        });
        Self {
            stopped: survey.host.stopped.clone(),
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

/// A name or a HELP.
type Text = &'static str;

/// Names and values.
pub(super) type Labels = Vec<(Text, String)>;

/// All metrics, in the order in which they were named first.
#[derive(Default)]
pub(super) struct Families {
    /// Of the thing that is measured now: they are in each of its samples.
    labels: Labels,
    all: Vec<Family>,
}

/// All samples of one metric, a line each.
struct Family {
    name: Text,
    help: Text,
    samples: String,
}

impl Families {
    /// For the samples of one thing.
    pub(super) fn of(&mut self, labels: Labels) -> &mut Self {
        self.labels = labels;
        self
    }

    /// One number; `None` is unknown.
    pub(super) fn number<N: Display>(&mut self, name: Text, help: Text, value: Option<N>) {
        self.each(name, help, value.map(|value| (Vec::new(), value)));
    }

    /// 1 for the state that holds, 0 for each other. The label has the metric's name, as OpenMetrics has it for a state set.
    pub(super) fn states<S: Display + PartialEq>(&mut self, name: Text, help: Text, all: &[S], present: Option<S>) {
        let sample = |state: &S| (vec![(name, state.to_string())], u8::from(present.as_ref() == Some(state)));
        self.each(name, help, all.iter().map(sample));
    }

    /// A number for each of several labels.
    pub(super) fn each<N: Display>(&mut self, name: Text, help: Text, samples: impl IntoIterator<Item = (Labels, N)>) {
        if !self.all.iter().any(|family| family.name == name) {
            self.all.push(Family { name, help, samples: String::new() });
        }
        let Some(family) = self.all.iter_mut().find(|family| family.name == name) else { return };
        for (more, value) in samples {
            let labels: Vec<_> = self.labels.iter().chain(&more).map(|(name, value)| label(name, value)).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            family.samples += &format!("{name}{labels} {value}\n");
        }
    }

    /// The complete text, without metrics that have no sample.
    pub(super) fn text(self) -> String {
        let mut text = String::new();
        for Family { name, help, samples } in self.all.iter().filter(|family| !family.samples.is_empty()) {
            text += &format!("# HELP {name} {help}\n# TYPE {name} gauge\n");
            text += samples;
        }
        text + "# EOF\n"
    }
}

fn label(name: &str, value: &str) -> String {
    let value = escape::lines(value).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{name}=\"{value}\"")
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
        let mut snapshot = MetricsSnapshot::from(&survey(&Root::at(tree.path()), 20));
        make_unique(snapshot.instances.iter_mut().map(|instance| (instance.kind.clone(), &mut instance.name)));
        assert_eq!(snapshot.meminfo.and_then(|meminfo| meminfo.page_tables), Some(hugepage_kernel::Bytes(1_024_000)));
        snapshot.instances.into_iter().map(|instance| format!("{} {}", instance.kind, instance.name)).collect()
    }

    #[test]
    fn no_two_instances_have_the_same_name() {
        let tree = host(&[(10, "/pg/15"), (20, "/data"), (30, "/data")]);
        assert_eq!(names(&tree), ["postgresql /pg/15", "postgresql /data", "postgresql /data (2)"]);
    }
}
