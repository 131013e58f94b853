//! Every metric: name, unit, HELP, and where its value comes from. docs/monitoring.md shows the same list.

use std::fmt::Display;

use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::{Bytes, PageSize, Pages};

use super::{Family, InstanceMetrics, Labels, MetricsSnapshot, Sample, StoppedMetrics};
use crate::assessment::stopped_oracle::StoppedState;
use crate::assessment::{Finding, Outlook, Severity};
use crate::model::{Cause, Landing};
use crate::pools::PoolRow;

/// A metric of a `T`. Its full name ends with the unit.
struct Metric<T> {
    name: &'static str,
    unit: Option<&'static str>,
    help: &'static str,
    value: Value<T>,
}

/// Where the value comes from.
enum Value<T> {
    /// One number; `None` is unknown.
    Number(fn(&T) -> Option<u64>),
    /// A number for each text that the label can have.
    Each(&'static str, fn(&T) -> Vec<(String, u64)>),
    /// 1, with facts that do not change while the server runs as labels.
    Info(fn(&T) -> Labels),
}

const BYTES: Option<&str> = Some("bytes");
const HUGEPAGES: Option<&str> = Some("hugepages");

const INSTANCE: &[Metric<InstanceMetrics>] = &[
    Metric {
        name: "hugepage_verdict",
        unit: None,
        help: "Gravest finding: 0 ok, 1 notice, 2 warning, 3 critical.",
        value: Value::Number(|instance| Some(level(instance.status.verdict().0))),
    },
    Metric {
        name: "hugepage_finding_severity",
        unit: None,
        help: "Severity of each possible finding: 0 not found, 1 notice, 2 warning, 3 critical.",
        value: Value::Each("finding", findings),
    },
    Metric {
        name: "hugepage_landed_in",
        unit: None,
        help: "Pages that shared memory is in: 1 for the present state, else 0.",
        value: Value::Each("landed_in", |instance| states(&Landing::ALL, Some(instance.status.facts.landing()))),
    },
    Metric {
        name: "hugepage_fallback_cause",
        unit: None,
        help: "Why shared memory is not in huge pages: 1 for the cause; all 0 in huge pages.",
        value: Value::Each("reason", |instance| states(&Cause::ALL, instance.status.cause)),
    },
    Metric {
        name: "hugepage_restart_outlook",
        unit: None,
        help: "Pages that the next start with the configuration on disk would get: 1 for the expected state, else 0.",
        value: Value::Each("lands_in", |instance| states(&Outlook::ALL, Some(instance.status.outlook))),
    },
    Metric {
        name: "hugepage_crash_outlook",
        unit: None,
        help: "Pages that a restart after a crash of one process would get, of PostgreSQL alone: 1 for the expected state, else 0.",
        value: Value::Each("lands_in", |instance| states(&Outlook::ALL, instance.status.crash_outlook())),
    },
    Metric {
        name: "hugepage_instance_info",
        unit: None,
        help: "The settings huge_pages and huge_page_size in effect, always 1.",
        value: Value::Info(|instance| {
            let facts = &instance.status.facts;
            let size = facts.huge_page_size.map_or(String::new(), page_size);
            vec![("huge_pages", facts.asked.huge_pages.to_string()), ("huge_page_size", size)]
        }),
    },
    Metric {
        name: "hugepage_shared_buffers",
        unit: BYTES,
        help: "Size of the buffer pool.",
        value: Value::Number(|instance| bytes(Some(instance.status.facts.asked.shared_buffers))),
    },
    Metric {
        name: "hugepage_shared_memory",
        unit: BYTES,
        help: "Size of the main shared memory segment.",
        value: Value::Number(|instance| bytes(instance.status.facts.segment_size())),
    },
    Metric {
        name: "hugepage_page_size",
        unit: BYTES,
        help: "Page size of the main segment.",
        value: Value::Number(|instance| bytes(instance.status.facts.page_size().map(PageSize::bytes))),
    },
    Metric {
        name: "hugepage_pages_needed",
        unit: None,
        help: "Huge pages that the running segment has or would need.",
        value: Value::Number(|instance| pages(instance.status.needed)),
    },
    Metric {
        name: "hugepage_pages_missing",
        unit: None,
        help: "Of these, pages that are unavailable now; 0 in huge pages.",
        value: Value::Number(|instance| pages(instance.status.missing)),
    },
    Metric {
        name: "hugepage_recommended_nr",
        unit: HUGEPAGES,
        help: "Recommended pool of the whole host, in pages of the size that this instance uses.",
        value: Value::Number(|instance| pages(instance.status.recommended)),
    },
    Metric {
        name: "hugepage_cgroup_limit",
        unit: BYTES,
        help: "The hugetlb cgroup limit of the instance with the least room; no sample without a limit.",
        value: Value::Number(|instance| bytes(instance.status.facts.limits.as_ref()?.tightest().map(|l| l.limit))),
    },
    Metric {
        name: "hugepage_cgroup_usage",
        unit: BYTES,
        help: "Usage that counts against that limit.",
        value: Value::Number(|instance| bytes(instance.status.facts.limits.as_ref()?.tightest().map(|l| l.usage))),
    },
    Metric {
        name: "hugepage_generation",
        unit: None,
        help: "Allocations of shared memory by this postmaster; no sample unless the library is preloaded.",
        value: Value::Number(|instance| instance.generation),
    },
    Metric {
        name: "hugepage_page_tables_processes",
        unit: None,
        help: "Processes of the instance.",
        value: Value::Number(|instance| instance.page_tables.as_ref().map(|tables| tables.processes)),
    },
    Metric {
        name: "hugepage_page_tables_total",
        unit: BYTES,
        help: "Page tables of all processes of the instance.",
        value: Value::Number(|instance| bytes(instance.page_tables.as_ref()?.total)),
    },
    Metric {
        name: "hugepage_page_tables_max",
        unit: BYTES,
        help: "Page tables of the process with the most.",
        value: Value::Number(|instance| bytes(instance.page_tables.as_ref()?.max)),
    },
    Metric {
        name: "hugepage_page_tables_saving",
        unit: BYTES,
        help: "Lower bound of what huge pages would free of the instance's page tables.",
        value: Value::Number(|instance| bytes(instance.page_tables.as_ref()?.of_shared_memory)),
    },
    Metric {
        name: "hugepage_page_tables_at_max_connections",
        unit: BYTES,
        help: "Page tables of max_connections backends that have each touched all of shared memory.",
        value: Value::Number(|instance| bytes(instance.page_tables_at_max)),
    },
];

/// Names of their own: what is said of running instances has no samples of others.
const STOPPED: &[Metric<StoppedMetrics>] = &[
    Metric {
        name: "hugepage_stopped_state",
        unit: None,
        help: "An Oracle instance of oratab that does not run: 1 for its state, else 0.",
        value: Value::Each("state", |stopped| states(&StoppedState::ALL, Some(stopped.state))),
    },
    Metric {
        name: "hugepage_stopped_verdict",
        unit: None,
        help: "How severe that is: 0 ok, 1 notice, 2 warning, 3 critical.",
        value: Value::Number(|stopped| Some(level(stopped.severity))),
    },
    Metric {
        name: "hugepage_stopped_restart_outlook",
        unit: None,
        help: "Pages that its next start would get: 1 for the expected state, else 0.",
        value: Value::Each("lands_in", |stopped| states(&Outlook::ALL, Some(stopped.outlook))),
    },
    Metric {
        name: "hugepage_stopped_pages_needed",
        unit: None,
        help: "Huge pages that its next start needs; 0 if it asks for none.",
        value: Value::Number(|stopped| pages(stopped.needed)),
    },
    Metric {
        name: "hugepage_stopped_pages_missing",
        unit: None,
        help: "Of these, pages that the pool could not give it now.",
        value: Value::Number(|stopped| pages(stopped.missing)),
    },
];

const POOL: &[Metric<PoolRow>] = &[
    Metric {
        name: "hugepage_pool_nr",
        unit: HUGEPAGES,
        help: "Pages in the pool of the host, surplus included.",
        value: Value::Number(|row| pages(Some(row.pool.nr))),
    },
    Metric {
        name: "hugepage_pool_free",
        unit: HUGEPAGES,
        help: "Of these, pages not yet touched; they may be reserved.",
        value: Value::Number(|row| pages(Some(row.pool.free))),
    },
    Metric {
        name: "hugepage_pool_resv",
        unit: HUGEPAGES,
        help: "Of the free pages, those reserved by a mapping.",
        value: Value::Number(|row| pages(row.pool.resv)),
    },
    Metric {
        name: "hugepage_pool_surplus",
        unit: HUGEPAGES,
        help: "Pages above the configured pool size; they are freed when their user stops.",
        value: Value::Number(|row| pages(row.pool.surplus)),
    },
    Metric {
        name: "hugepage_pool_nr_overcommit",
        unit: HUGEPAGES,
        help: "Maximum of surplus pages that the kernel may add.",
        value: Value::Number(|row| pages(row.pool.overcommit)),
    },
    Metric {
        name: "hugepage_pool_available",
        unit: HUGEPAGES,
        help: "Pages that are free and not reserved.",
        value: Value::Number(|row| pages(row.pool.available())),
    },
    Metric {
        name: "hugepage_pool_obtainable",
        unit: HUGEPAGES,
        help: "Pages that free memory can still provide without compaction.",
        value: Value::Number(|row| pages(row.obtainable_now)),
    },
];

const NODE: &[Metric<PoolRow>] = &[
    Metric {
        name: "hugepage_node_nr",
        unit: HUGEPAGES,
        help: "Pages of the pool on this NUMA node.",
        value: Value::Number(|row| pages(Some(row.pool.nr))),
    },
    Metric {
        name: "hugepage_node_free",
        unit: HUGEPAGES,
        help: "Of these, pages not yet touched.",
        value: Value::Number(|row| pages(Some(row.pool.free))),
    },
    Metric {
        name: "hugepage_node_surplus",
        unit: HUGEPAGES,
        help: "Pages of this node above the configured pool size.",
        value: Value::Number(|row| pages(row.pool.surplus)),
    },
];

const HOST: &[Metric<Meminfo>] = &[
    Metric {
        name: "hugepage_host_page_tables",
        unit: BYTES,
        help: "Page tables of the whole host.",
        value: Value::Number(|meminfo| bytes(meminfo.page_tables)),
    },
    Metric {
        name: "hugepage_host_memory",
        unit: BYTES,
        help: "Memory of the host, huge pages included.",
        value: Value::Number(|meminfo| bytes(meminfo.mem_total)),
    },
];

/// All metrics that have a sample, in the order of the definitions.
pub(super) fn families(snapshot: &MetricsSnapshot) -> Vec<Family> {
    let of_instance =
        |instance: &InstanceMetrics| vec![("kind", instance.kind.clone()), ("name", instance.name.clone())];
    let of_pool = |row: &PoolRow| vec![("page_size", page_size(row.pool.page_size))];
    let of_node =
        |row: &PoolRow| [of_pool(row), row.node.map(|node| ("node", node.to_string())).into_iter().collect()].concat();
    let (pools, nodes): (Vec<&PoolRow>, Vec<&PoolRow>) = snapshot.pools.iter().partition(|row| row.node.is_none());
    let instances: Vec<_> = snapshot.instances.iter().collect();
    let host: Vec<_> = snapshot.meminfo.iter().collect();
    let mut families = Vec::new();
    families.extend(INSTANCE.iter().map(|metric| metric.family(&instances, of_instance)));
    let stopped: Vec<_> = snapshot.stopped.iter().collect();
    let of_stopped = |stopped: &StoppedMetrics| vec![("kind", stopped.kind.clone()), ("name", stopped.name.clone())];
    families.extend(STOPPED.iter().map(|metric| metric.family(&stopped, of_stopped)));
    families.extend(POOL.iter().map(|metric| metric.family(&pools, of_pool)));
    families.extend(NODE.iter().map(|metric| metric.family(&nodes, of_node)));
    families.extend(HOST.iter().map(|metric| metric.family(&host, |_| Vec::new())));
    families.retain(|family| !family.samples.is_empty());
    families
}

impl<T> Metric<T> {
    /// The samples of all `things`, each with its labels.
    fn family(&self, things: &[&T], labels: impl Fn(&T) -> Labels) -> Family {
        let samples = things.iter().flat_map(|thing| self.samples(thing, labels(thing))).collect();
        Family { name: self.name, unit: self.unit, help: self.help, samples }
    }

    fn samples(&self, thing: &T, labels: Labels) -> Vec<Sample> {
        match &self.value {
            Value::Number(number) => number(thing).map(|value| Sample { labels, value }).into_iter().collect(),
            Value::Info(more) => vec![Sample { labels: [labels, more(thing)].concat(), value: 1 }],
            Value::Each(label, each) => {
                let sample = |(text, value)| Sample { labels: [&labels[..], &[(*label, text)]].concat(), value };
                each(thing).into_iter().map(sample).collect()
            }
        }
    }
}

/// The severity of each possible finding.
fn findings(instance: &InstanceMetrics) -> Vec<(String, u64)> {
    Finding::NAMES.iter().map(|name| ((*name).to_owned(), level(instance.status.severity_of(name)))).collect()
}

/// A number for each of `all`: 1 for `present`, else 0.
fn states<S: Display + PartialEq + Copy>(all: &[S], present: Option<S>) -> Vec<(String, u64)> {
    all.iter().map(|state| (state.to_string(), u64::from(present == Some(*state)))).collect()
}

const fn level(severity: Severity) -> u64 {
    match severity {
        Severity::Ok => 0,
        Severity::Notice => 1,
        Severity::Warning => 2,
        Severity::Critical => 3,
    }
}

fn bytes(value: Option<Bytes>) -> Option<u64> {
    value.map(|bytes| bytes.0)
}

fn pages(value: Option<Pages>) -> Option<u64> {
    value.map(|pages| pages.0)
}

/// In bytes, as in the views.
fn page_size(size: PageSize) -> String {
    size.bytes().0.to_string()
}
