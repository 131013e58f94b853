//! The value of every metric that columns.txt declares: that of its column. docs/monitoring.md shows the same list.

use std::time::UNIX_EPOCH;

use hugepage_assess::assessment::Finding;
use hugepage_assess::columns::{self, fields};
use hugepage_assess::pools::PoolColumns;
use hugepage_assess::{StatusRow, row_of};
use hugepage_facts::{PoolRow, pools};
use hugepage_kernel::{PageSize, Pages};
use hugepage_oracle::stopped::StoppedOracle;

use super::{Families, InstanceMetrics, MetricsSnapshot};

/// What has several samples is a list, of the labels and the value of each.
fn of_instance(instance: &InstanceMetrics, of: &mut Families) {
    let (status, tables) = (&instance.status, &instance.page_tables);
    let facts = &status.facts;
    let limits = facts.pool_state.limits.as_ref();
    let limit = limits.and_then(|limits| limits.tightest());
    let found = |name: &&'static str| ([("finding", *name)], status.severity_of(name) as u8);
    let size = facts.pool_state.huge_page_size.map(page_size);
    let setting = (!facts.requested_is_assumed).then(|| facts.requested.huge_pages.to_string());
    let settings = [
        ("huge_pages", setting.unwrap_or_default()),
        ("huge_page_size", size.unwrap_or_default()),
    ];
    let own = row_of! { METRICS_INSTANCE, StatusRow;
        hugepage_verdict: status.verdict().0 as u8,
        hugepage_finding_severity: Finding::NAMES.iter().map(found).collect::<Vec<_>>(),
        crash_outlook: status.crash_outlook(),
        hugepage_instance_info: [(settings, 1)],
        shared_buffers: facts.requested.shared_buffers,
        cgroup_limit: limit.map(|limit| limit.limit),
        cgroup_usage: limit.map(|limit| limit.usage),
        processes: tables.processes,
        page_tables_total: tables.total,
        page_tables_max: tables.max,
        saving: tables.of_shared_memory,
        hugepage_last_regression_timestamp_seconds:
            instance.last_regression.and_then(|at| Some(at.duration_since(UNIX_EPOCH).ok()?.as_secs())),
    };
    let row = fields(&StatusRow::new(status)).chain(own);
    of.add(columns::METRICS_INSTANCE, row);
}

/// Metrics of their own: what is said of running instances has no samples of others.
fn of_stopped(stopped: &StoppedOracle, of: &mut Families) {
    let forecast = stopped.forecast.as_ref();
    let missing = forecast.and_then(|forecast| forecast.missing);
    let row = row_of! { METRICS_STOPPED;
        hugepage_stopped_state: stopped.state.to_string(),
        hugepage_stopped_verdict: stopped.severity() as u8,
        hugepage_stopped_pages_missing:
            missing.or(stopped.wants.pages().filter(|pages| *pages == Pages(0))),
    };
    of.add(columns::METRICS_STOPPED, row);
}

fn of_pool(row: &PoolRow, of: &mut Families) {
    const _: () = columns::require(columns::METRICS_POOL, &[PoolColumns::NAMES]);
    of.add(columns::METRICS_POOL, fields(&PoolColumns::new(row)));
}

fn of_host(host: &MetricsSnapshot, of: &mut Families) {
    let meminfo = host.meminfo.as_ref();
    let row = row_of! { METRICS_HOST;
        page_tables_host: meminfo.and_then(|meminfo| meminfo.page_tables),
        memory_total: meminfo.and_then(|meminfo| meminfo.mem_total),
        hugepage_uninspected_instances: host.uninspected,
        hugepage_survey_duration_seconds: host.survey_duration.map(|duration| duration.as_secs_f64()),
        hugepage_build_info: [([("version", env!("CARGO_PKG_VERSION"))], 1)],
    };
    of.add(columns::METRICS_HOST, row);
}

/// All metrics, in the order of the declarations.
pub(super) fn families(snapshot: &MetricsSnapshot) -> Families {
    let mut families = Families::default();
    for one in &snapshot.instances {
        of_instance(one, families.of_named(&one.kind, &one.name));
    }
    for one in &snapshot.stopped {
        of_stopped(one, families.of_named(&one.kind.to_string(), &one.name));
    }
    for row in pools::of_host(&snapshot.pools) {
        of_pool(
            row,
            families.of(vec![("page_size", page_size(row.pool.page_size))]),
        );
    }
    of_host(snapshot, families.of(Vec::new()));
    families
}

/// In bytes, as in the views.
fn page_size(size: PageSize) -> String {
    size.bytes().0.to_string()
}
