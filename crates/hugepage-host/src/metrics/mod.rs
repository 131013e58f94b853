//! The metrics of a surveyed host with all its instances.
//!
//! columns.txt of `hugepage-assess` declares each metric with its HELP, and [`definitions`] has the values. All are gauges. A metric
//! of a state has a series for each possible state, 1 for the present one. The result is OpenMetrics that node_exporter's textfile
//! collector can also read. That knows only the older text format, which has no types for infos and sets of states. Unknown
//! values have no sample.

mod definitions;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use hugepage_assess::assessment::Status;
use hugepage_assess::columns::{Column, NamedValue, Value};
use hugepage_facts::{Landing, PageTables, PoolRow, ServerIdentity, escape};
use hugepage_kernel::Meminfo;
use hugepage_oracle::stopped::StoppedOracle;

use crate::Survey;
use crate::identify::owns_its_directory;

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
pub fn text(snapshot: &MetricsSnapshot) -> String {
    definitions::families(snapshot).text()
}

/// The SIDs of the host, each with its homes, whether an instance runs there or not: so that a series keeps its name while another
/// instance stops and starts.
fn homes(survey: &Survey) -> BTreeSet<(&str, &str)> {
    let ids = survey.instances.iter().map(|instance| &instance.id);
    let running = ids
        .filter(|id| id.place.container.is_none())
        .filter_map(|id| Some((&*id.name, home(id)?)));
    let stopped = survey.stopped.iter();
    running
        .chain(stopped.map(|one| (&*one.name, &*one.home)))
        .collect()
}

fn home(id: &ServerIdentity) -> Option<&str> {
    id.oracle()?.home.as_deref()
}

/// The name of an instance, with its home where another one has instances of that name.
fn with_home(homes: &BTreeSet<(&str, &str)>, name: &str, home: Option<&str>) -> String {
    let is_of_name = |(sid, _): &&(&str, &str)| *sid == name;
    match home.filter(|_| homes.iter().filter(is_of_name).count() > 1) {
        Some(home) => format!("{name} in {home}"),
        None => name.to_owned(),
    }
}

impl From<&Survey> for MetricsSnapshot {
    fn from(survey: &Survey) -> Self {
        let sizings = survey.sizings();
        let homes = homes(survey);
        let mut stopped = survey.stopped.clone();
        for one in &mut stopped {
            one.name = with_home(&homes, &one.name, Some(&one.home));
        }
        let name = |id: &ServerIdentity| match id.pod.as_ref().or(id.place.container.as_ref()) {
            Some(container) => format!("{} in {container}", id.name),
            None if !owns_its_directory(id) => {
                format!("{} of uid {}", id.name, id.place.uid.unwrap_or_default())
            }
            None => with_home(&homes, &id.name, home(id)),
        };
        let instances = survey.instances.iter().map(|instance| InstanceMetrics {
            kind: instance.id.kind(),
            name: name(&instance.id),
            // One number for the host in all outputs: where not all servers fit, it is that of those that do.
            status: Status {
                recommended: instance.recommended(&sizings),
                ..instance.status.clone()
            },
            page_tables: instance.memory.page_tables,
            last_regression: None,
        });
        Self {
            stopped,
            instances: instances.collect(),
            pools: survey.host.pools.clone(),
            meminfo: survey.host.meminfo.clone(),
            uninspected: (survey.host.unread.len() + survey.landed_in(Landing::Unknown)) as u64,
            survey_duration: None,
        }
    }
}

/// Names and values.
type Labels = Vec<(&'static str, String)>;

/// All metrics, in the order in which they were named first.
#[derive(Default)]
pub(super) struct Families {
    /// Of the thing that is measured now: they are in each of its samples.
    labels: Labels,
    /// The kinds and the names of instances that were measured.
    named: BTreeSet<(String, String)>,
    all: Vec<Family>,
}

/// All samples of one metric, a line each.
struct Family {
    metric: &'static Column,
    samples: String,
}

impl Families {
    /// For the samples of one thing.
    pub(super) fn of(&mut self, labels: Labels) -> &mut Self {
        self.labels = labels;
        self
    }

    /// For the samples of an instance. Names that are equal, as in a tree, get numbers: a duplicate series makes the whole text invalid.
    pub(super) fn of_named(&mut self, kind: &str, name: &str) -> &mut Self {
        let numbered = (2..).map(|number| format!("{name} ({number})"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        let is_new = |name: &String| self.named.insert((kind.to_owned(), escape::lines(name)));
        let name = names.find(is_new).unwrap_or_default();
        self.of(vec![("kind", kind.to_owned()), ("name", name)])
    }

    /// The samples of these metrics: the values of their columns in a row. Unknown has none, and of a list each has labels.
    pub(super) fn add(
        &mut self,
        metrics: &'static [Column],
        row: impl IntoIterator<Item = NamedValue>,
    ) {
        let row: BTreeMap<_, _> = row.into_iter().collect();
        for metric in metrics {
            let value = row.get(metric.name).unwrap_or(&Value::Null);
            let samples: Vec<(Vec<(String, String)>, Value)> = match value {
                // The label has the metric's name, as OpenMetrics has it for a state set.
                _ if !metric.words.is_empty() => {
                    let label = |word: &str| vec![(metric.metric.to_owned(), word.to_owned())];
                    let words = metric.words.iter();
                    words
                        .map(|word| (label(word), u8::from(value == word).into()))
                        .collect()
                }
                Value::Array(_) => serde_json::from_value(value.clone()).unwrap_or_default(),
                Value::Null => Vec::new(),
                number => vec![(Vec::new(), number.clone())],
            };
            self.sample(metric, &samples);
        }
    }

    fn sample(&mut self, metric: &'static Column, samples: &[(Vec<(String, String)>, Value)]) {
        let known = |family: &Family| family.metric.metric == metric.metric;
        let at = self.all.iter().position(known).unwrap_or_else(|| {
            let samples = String::new();
            self.all.push(Family { metric, samples });
            self.all.len() - 1
        });
        for (more, value) in samples {
            let own = self.labels.iter().map(|(name, value)| label(name, value));
            let more = more.iter().map(|(name, value)| label(name, value));
            let labels = own.chain(more).collect::<Vec<_>>().join(",");
            let labels = match &*labels {
                "" => labels,
                _ => format!("{{{labels}}}"),
            };
            self.all[at].samples += &format!("{}{labels} {value}\n", metric.metric);
        }
    }

    /// The complete text, without metrics that have no sample.
    pub(super) fn text(self) -> String {
        let mut text = String::new();
        let with_samples = |family: &Family| !family.samples.is_empty();
        for Family { metric, samples } in self.all.into_iter().filter(with_samples) {
            let (name, help) = (metric.metric, metric.help());
            text += &format!("# HELP {name} {help}\n# TYPE {name} gauge\n{samples}");
        }
        text + "# EOF\n"
    }
}

fn label(name: &str, value: &str) -> String {
    let value = escape::lines(value)
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
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
            fs::write(
                process.join("cmdline"),
                format!("/usr/bin/postgres\0-D\0{directory}\0"),
            )
            .unwrap();
            fs::write(process.join("status"), "PPid:\t1\nVmPTE:\t100 kB\n").unwrap();
            let maps = "7f0000000000-7f0040000000 rw-s 00000000 00:01 1028 /dev/zero (deleted)\n";
            fs::write(process.join("maps"), maps).unwrap();
        }
        tree
    }

    fn names(tree: &tempfile::TempDir) -> Vec<String> {
        let snapshot = MetricsSnapshot::from(&survey(&Root::at(tree.path()), 20));
        assert_eq!(
            snapshot
                .meminfo
                .as_ref()
                .and_then(|meminfo| meminfo.page_tables),
            Some(hugepage_kernel::Bytes(1_024_000))
        );
        let text = text(&snapshot);
        let verdicts = text
            .lines()
            .filter_map(|line| line.strip_prefix("hugepage_verdict{"));
        verdicts.map(|line| line.replace("\"", "")).collect()
    }

    #[test]
    fn no_two_instances_have_the_same_name() {
        let tree = host(&[(10, "/pg/15"), (20, "/data"), (30, "/data")]);
        assert_eq!(
            names(&tree),
            [
                "kind=postgresql,name=/pg/15} 1",
                "kind=postgresql,name=/data} 1",
                "kind=postgresql,name=/data (2)} 1"
            ]
        );
    }
}
