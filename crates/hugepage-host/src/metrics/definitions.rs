//! Every metric: name, HELP, and where its value comes from. A name ends with the unit. docs/monitoring.md shows the same list.

use std::time::UNIX_EPOCH;

use hugepage_assess::assessment::{Finding, Outlook};
use hugepage_assess::model::{Cause, Landing};
use hugepage_assess::pools::{self, PoolRow};
use hugepage_kernel::{Bytes, PageSize, Pages};
use hugepage_oracle::stopped::{StoppedOracle, StoppedState};

use super::{Families, InstanceMetrics, MetricsSnapshot};

/// Metrics of one thing: how it is measured, the name, the HELP, and the value. `None` is unknown.
macro_rules! gauges {
    ($of:ident: $($kind:ident $name:literal $help:literal = $($value:expr),+;)*) => { $($of.$kind($name, $help, $($value),+);)* };
}

fn of_instance(instance: &InstanceMetrics, of: &mut Families) {
    let (status, facts, tables) = (&instance.status, &instance.status.facts, &instance.page_tables);
    let limit = facts.pool_state.limits.as_ref().and_then(|limits| limits.tightest());
    let found = |name: &&str| (vec![("finding", (*name).to_owned())], status.severity_of(name) as u8);
    let page_size = facts.pool_state.huge_page_size.map_or(String::new(), page_size);
    let settings = vec![("huge_pages", facts.requested.huge_pages.to_string()), ("huge_page_size", page_size)];
    gauges! { of:
        number "hugepage_verdict" "Most severe finding: 0 ok, 1 notice, 2 warning, 3 critical." = Some(status.verdict().0 as u8);
        each "hugepage_finding_severity" "Severity of each possible finding: 0 not found, 1 notice, 2 warning, 3 critical."
            = Finding::NAMES.iter().map(found);
        states "hugepage_landed_in" "Pages that shared memory is in: 1 for the present state, else 0."
            = &Landing::ALL, Some(facts.landing());
        states "hugepage_fallback_cause" "Why shared memory is not in huge pages: 1 for the cause; all 0 in huge pages."
            = &Cause::ALL, status.cause;
        states "hugepage_restart_outlook"
            "Pages that the next start with the configuration on disk would get: 1 for the expected state, else 0."
            = &Outlook::ALL, Some(status.outlook);
        states "hugepage_crash_outlook"
            "Pages that a restart after a crash of one process would get, of PostgreSQL alone: 1 for the expected state, else 0."
            = &Outlook::ALL, status.crash_outlook();
        each "hugepage_instance_info" "The settings huge_pages and huge_page_size in effect, always 1." = [(settings, 1)];
        number "hugepage_shared_buffers_bytes" "Size of the buffer pool." = bytes(Some(facts.requested.shared_buffers));
        number "hugepage_shared_memory_bytes" "Size of the main shared memory segment." = bytes(facts.segment_size());
        number "hugepage_page_size_bytes" "Page size of the main segment." = bytes(facts.page_size().map(PageSize::bytes));
        number "hugepage_pages_needed" "Huge pages that the running segment has or would need." = pages(status.needed);
        number "hugepage_pages_missing" "Needed pages that are unavailable now; 0 in huge pages." = pages(status.missing);
        number "hugepage_recommended_nr_hugepages"
            "Recommended pool for this instance and all others that are seen, in pages of the size that it uses." = pages(status.recommended);
        number "hugepage_cgroup_limit_bytes"
            "The hugetlb cgroup limit of the instance with the least room; no sample without a limit."
            = bytes(limit.map(|limit| limit.limit));
        number "hugepage_cgroup_usage_bytes" "Usage that counts against the hugetlb cgroup limit." = bytes(limit.map(|limit| limit.usage));
        number "hugepage_page_tables_processes" "Processes of the instance." = Some(tables.processes);
        number "hugepage_page_tables_bytes" "Page tables of all processes of the instance." = bytes(tables.total);
        number "hugepage_page_tables_max_bytes" "Page tables of the process with the most." = bytes(tables.max);
        number "hugepage_page_tables_saving_bytes"
            "Lower bound of what huge pages would free of the instance's page tables." = bytes(tables.of_shared_memory);
        number "hugepage_last_regression_timestamp_seconds"
            "Time of the last loss of huge pages in the history, in seconds since 1970; no sample without one."
            = instance.last_regression.and_then(|at| Some(at.duration_since(UNIX_EPOCH).ok()?.as_secs()));
    }
}

/// Names of their own: what is said of running instances has no samples of others.
fn of_stopped(stopped: &StoppedOracle, of: &mut Families) {
    let missing = stopped.forecast.as_ref().and_then(|forecast| forecast.missing);
    let missing = missing.or(stopped.wants.pages().filter(|pages| *pages == Pages(0)));
    gauges! { of:
        states "hugepage_stopped_state" "An instance that is configured and does not run: 1 for its state, else 0."
            = &StoppedState::ALL, Some(stopped.state);
        number "hugepage_stopped_verdict" "Severity of an instance that does not run: 0 ok, 1 notice, 2 warning, 3 critical."
            = Some(stopped.severity() as u8);
        number "hugepage_stopped_pages_missing" "Huge pages that the next start of a stopped instance needs and the pool does not have now." = pages(missing);
    }
}

fn of_pool(row: &PoolRow, of: &mut Families) {
    let pool = &row.pool;
    gauges! { of:
        number "hugepage_pool_nr_hugepages" "Pages in the pool of the host, surplus included." = pages(Some(pool.nr));
        number "hugepage_pool_free_hugepages" "Pages of the pool that are not yet touched; they may be reserved." = pages(Some(pool.free));
        number "hugepage_pool_resv_hugepages" "Of the free pages, those reserved by a mapping." = pages(pool.resv);
        number "hugepage_pool_surplus_hugepages"
            "Pages above the configured pool size; they are freed when their user stops." = pages(pool.surplus);
        number "hugepage_pool_nr_overcommit_hugepages" "Maximum of surplus pages that the kernel may add." = pages(pool.overcommit);
        number "hugepage_pool_available_hugepages" "Pages that are free and not reserved." = pages(pool.available());
    }
}

fn of_host(host: &MetricsSnapshot, of: &mut Families) {
    let meminfo = host.meminfo.clone().unwrap_or_default();
    gauges! { of:
        number "hugepage_host_page_tables_bytes" "Page tables of the whole host." = bytes(meminfo.page_tables);
        number "hugepage_host_memory_bytes" "Memory of the host, huge pages included." = bytes(meminfo.mem_total);
        number "hugepage_uninspected_instances" "Instances that run and whose shared memory could not be inspected."
            = Some(host.uninspected);
        number "hugepage_survey_duration_seconds" "Time that the survey of the host took."
            = host.survey_duration.map(|duration| duration.as_secs_f64());
        each "hugepage_build_info" "The version that is installed, always 1."
            = [(vec![("version", env!("CARGO_PKG_VERSION").to_owned())], 1)];
    }
}

/// All metrics, in the order of the definitions.
pub(super) fn families(snapshot: &MetricsSnapshot) -> Families {
    let mut families = Families::default();
    let named = |kind: &str, name: &str| vec![("kind", kind.to_owned()), ("name", name.to_owned())];
    for one in &snapshot.instances {
        of_instance(one, families.of(named(&one.kind, &one.name)));
    }
    for one in &snapshot.stopped {
        of_stopped(one, families.of(named(&one.kind.to_string(), &one.name)));
    }
    for row in pools::of_host(&snapshot.pools) {
        of_pool(row, families.of(vec![("page_size", page_size(row.pool.page_size))]));
    }
    of_host(snapshot, families.of(Vec::new()));
    families
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
