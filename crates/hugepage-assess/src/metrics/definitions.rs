//! Every metric: name, unit, HELP, and where its value comes from. docs/monitoring.md shows the same list.

use std::fmt::Display;
use std::time::UNIX_EPOCH;

use hugepage_kernel::{Bytes, PageSize, Pages};

use super::metric::Metric;
use super::{Family, InstanceMetrics, MetricsSnapshot, StoppedMetrics};
use crate::assessment::stopped::StoppedState;
use crate::assessment::{Finding, Outlook, Severity};
use crate::model::{Cause, Landing};
use crate::pools::PoolRow;

const BYTES: Option<&str> = Some("bytes");
const HUGEPAGES: Option<&str> = Some("hugepages");

const INSTANCE: &[Metric<InstanceMetrics>] = &[
    Metric::number("hugepage_verdict", None, "Gravest finding: 0 ok, 1 notice, 2 warning, 3 critical.", |instance| {
        Some(level(instance.status.verdict().0))
    }),
    Metric::each(
        "hugepage_finding_severity",
        "Severity of each possible finding: 0 not found, 1 notice, 2 warning, 3 critical.",
        "finding",
        findings,
    ),
    Metric::states(
        "hugepage_landed_in",
        "Pages that shared memory is in: 1 for the present state, else 0.",
        |instance| states(&Landing::ALL, Some(instance.status.facts.landing())),
    ),
    Metric::states(
        "hugepage_fallback_cause",
        "Why shared memory is not in huge pages: 1 for the cause; all 0 in huge pages.",
        |instance| states(&Cause::ALL, instance.status.cause),
    ),
    Metric::states(
        "hugepage_restart_outlook",
        "Pages that the next start with the configuration on disk would get: 1 for the expected state, else 0.",
        |instance| states(&Outlook::ALL, Some(instance.status.outlook)),
    ),
    Metric::states(
        "hugepage_crash_outlook",
        "Pages that a restart after a crash of one process would get, of PostgreSQL alone: 1 for the expected state, else 0.",
        |instance| states(&Outlook::ALL, instance.status.crash_outlook()),
    ),
    Metric::info(
        "hugepage_instance_info",
        "The settings huge_pages and huge_page_size in effect, always 1.",
        |instance| {
            let facts = &instance.status.facts;
            let size = facts.pool_state.huge_page_size.map_or(String::new(), page_size);
            vec![("huge_pages", facts.requested.huge_pages.to_string()), ("huge_page_size", size)]
        },
    ),
    Metric::number("hugepage_shared_buffers", BYTES, "Size of the buffer pool.", |instance| {
        bytes(Some(instance.status.facts.requested.shared_buffers))
    }),
    Metric::number("hugepage_shared_memory", BYTES, "Size of the main shared memory segment.", |instance| {
        bytes(instance.status.facts.segment_size())
    }),
    Metric::number("hugepage_page_size", BYTES, "Page size of the main segment.", |instance| {
        bytes(instance.status.facts.page_size().map(PageSize::bytes))
    }),
    Metric::number(
        "hugepage_pages_needed",
        None,
        "Huge pages that the running segment has or would need.",
        |instance| pages(instance.status.needed),
    ),
    Metric::number(
        "hugepage_pages_missing",
        None,
        "Of these, pages that are unavailable now; 0 in huge pages.",
        |instance| pages(instance.status.missing),
    ),
    Metric::number(
        "hugepage_recommended_nr",
        HUGEPAGES,
        "Recommended pool of the whole host, in pages of the size that this instance uses.",
        |instance| pages(instance.status.recommended),
    ),
    Metric::number(
        "hugepage_cgroup_limit",
        BYTES,
        "The hugetlb cgroup limit of the instance with the least room; no sample without a limit.",
        |instance| bytes(instance.status.facts.pool_state.limits.as_ref()?.tightest().map(|l| l.limit)),
    ),
    Metric::number("hugepage_cgroup_usage", BYTES, "Usage that counts against that limit.", |instance| {
        bytes(instance.status.facts.pool_state.limits.as_ref()?.tightest().map(|l| l.usage))
    }),
    Metric::number("hugepage_page_tables_processes", None, "Processes of the instance.", |instance| {
        instance.page_tables.as_ref().map(|tables| tables.processes)
    }),
    Metric::number("hugepage_page_tables", BYTES, "Page tables of all processes of the instance.", |instance| {
        bytes(instance.page_tables.as_ref()?.total)
    }),
    Metric::number("hugepage_page_tables_max", BYTES, "Page tables of the process with the most.", |instance| {
        bytes(instance.page_tables.as_ref()?.max)
    }),
    Metric::number(
        "hugepage_page_tables_saving",
        BYTES,
        "Lower bound of what huge pages would free of the instance's page tables.",
        |instance| bytes(instance.page_tables.as_ref()?.of_shared_memory),
    ),
    Metric::number(
        "hugepage_last_regression_timestamp",
        Some("seconds"),
        "When the history has the last loss of huge pages, in seconds since 1970; no sample without one.",
        |instance| Some(instance.last_regression?.duration_since(UNIX_EPOCH).ok()?.as_secs()),
    ),
];

/// Names of their own: what is said of running instances has no samples of others.
const STOPPED: &[Metric<StoppedMetrics>] = &[
    Metric::states(
        "hugepage_stopped_state",
        "An instance that is configured and does not run: 1 for its state, else 0.",
        |stopped| states(&StoppedState::ALL, Some(stopped.state)),
    ),
    Metric::number(
        "hugepage_stopped_verdict",
        None,
        "How severe that is: 0 ok, 1 notice, 2 warning, 3 critical.",
        |stopped| Some(level(stopped.severity)),
    ),
    Metric::states(
        "hugepage_stopped_restart_outlook",
        "Pages that its next start would get: 1 for the expected state, else 0.",
        |stopped| states(&Outlook::ALL, Some(stopped.outlook)),
    ),
    Metric::number(
        "hugepage_stopped_pages_needed",
        None,
        "Huge pages that its next start needs; 0 if it asks for none.",
        |stopped| pages(stopped.needed),
    ),
    Metric::number(
        "hugepage_stopped_pages_missing",
        None,
        "Of these, pages that the pool could not give it now.",
        |stopped| pages(stopped.missing),
    ),
];

const POOL: &[Metric<PoolRow>] = &[
    Metric::number("hugepage_pool_nr", HUGEPAGES, "Pages in the pool of the host, surplus included.", |row| {
        pages(Some(row.pool.nr))
    }),
    Metric::number("hugepage_pool_free", HUGEPAGES, "Of these, pages not yet touched; they may be reserved.", |row| {
        pages(Some(row.pool.free))
    }),
    Metric::number("hugepage_pool_resv", HUGEPAGES, "Of the free pages, those reserved by a mapping.", |row| {
        pages(row.pool.resv)
    }),
    Metric::number(
        "hugepage_pool_surplus",
        HUGEPAGES,
        "Pages above the configured pool size; they are freed when their user stops.",
        |row| pages(row.pool.surplus),
    ),
    Metric::number(
        "hugepage_pool_nr_overcommit",
        HUGEPAGES,
        "Maximum of surplus pages that the kernel may add.",
        |row| pages(row.pool.overcommit),
    ),
    Metric::number("hugepage_pool_available", HUGEPAGES, "Pages that are free and not reserved.", |row| {
        pages(row.pool.available())
    }),
    Metric::number(
        "hugepage_pool_obtainable",
        HUGEPAGES,
        "Pages that free memory can still provide without compaction.",
        |row| pages(row.obtainable_now),
    ),
];

const NODE: &[Metric<PoolRow>] = &[
    Metric::number("hugepage_node_nr", HUGEPAGES, "Pages of the pool on this NUMA node.", |row| {
        pages(Some(row.pool.nr))
    }),
    Metric::number("hugepage_node_free", HUGEPAGES, "Of these, pages not yet touched.", |row| {
        pages(Some(row.pool.free))
    }),
    Metric::number("hugepage_node_surplus", HUGEPAGES, "Pages of this node above the configured pool size.", |row| {
        pages(row.pool.surplus)
    }),
];

const HOST: &[Metric<MetricsSnapshot>] = &[
    Metric::number("hugepage_host_page_tables", BYTES, "Page tables of the whole host.", |host| {
        bytes(host.meminfo.as_ref()?.page_tables)
    }),
    Metric::number("hugepage_host_memory", BYTES, "Memory of the host, huge pages included.", |host| {
        bytes(host.meminfo.as_ref()?.mem_total)
    }),
    Metric::number(
        "hugepage_uninspected_instances",
        None,
        "Instances that run and whose shared memory could not be inspected.",
        |host| Some(host.uninspected),
    ),
    Metric::seconds("hugepage_survey_duration", "Time that the survey of the host took.", |host| host.survey_duration),
    Metric::info("hugepage_build_info", "The version that is installed, always 1.", |_| {
        vec![("version", env!("CARGO_PKG_VERSION").to_owned())]
    }),
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
    let mut families = Vec::new();
    families.extend(INSTANCE.iter().map(|metric| metric.family(&instances, of_instance)));
    let stopped: Vec<_> = snapshot.stopped.iter().collect();
    let of_stopped = |stopped: &StoppedMetrics| vec![("kind", stopped.kind.clone()), ("name", stopped.name.clone())];
    families.extend(STOPPED.iter().map(|metric| metric.family(&stopped, of_stopped)));
    families.extend(POOL.iter().map(|metric| metric.family(&pools, of_pool)));
    families.extend(NODE.iter().map(|metric| metric.family(&nodes, of_node)));
    families.extend(HOST.iter().map(|metric| metric.family(&[snapshot], |_| Vec::new())));
    families.retain(|family| !family.samples.is_empty());
    families
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
