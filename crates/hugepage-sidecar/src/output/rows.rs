//! One flat row per instance and pool, with the column names of `hugepage_status` and `hugepage_pools`. Sizes are in bytes,
//! counters in pages; null means unknown.

use std::time::SystemTime;

use hugepage_assess::StatusRow;
use hugepage_assess::assessment::stopped::StoppedState;
use hugepage_assess::assessment::{Outlook, Severity, Sizing};
use hugepage_assess::model::Cause;
use hugepage_assess::pools::PoolRow;
use hugepage_host::memory::InstanceMemory;
use hugepage_host::status_row::status_row;
use hugepage_host::{Instance, Survey};
use hugepage_kernel::proc::rlimit::Rlimit;
use hugepage_kernel::{Bytes, PageSize, Pages};
use hugepage_oracle::stopped::StoppedOracle;
use serde::Serialize;

use crate::oracle::columns::PoolRecord;

/// A running instance.
#[derive(Debug, Serialize)]
pub struct InstanceRow {
    pub kind: String,
    pub name: String,
    pub pid: i32,
    #[serde(flatten)]
    pub status: StatusRow,
    pub processes: u64,
    /// The page tables of all its processes.
    pub page_tables_total: Option<Bytes>,
    /// The memlock limit; null if unlimited or unknown.
    pub memlock: Option<Bytes>,
    pub memlock_unlimited: Option<bool>,
    pub version: Option<String>,
    pub oracle_home: Option<String>,
    pub data_directory: Option<String>,
    pub started: Option<String>,
    /// The sources of the landing.
    pub evidence: Vec<String>,
    pub notes: Vec<String>,
    /// The shared memory by page size, ascending; empty if unknown.
    pub by_page_size: Vec<PageSizeShare>,
    /// The outlook of a crash restart; null for Oracle.
    pub crash_outlook: Option<Outlook>,
}

/// An Oracle instance of oratab that does not run.
#[derive(Debug, Serialize)]
pub struct StoppedRow {
    pub kind: String,
    pub name: String,
    /// `stopped`, or `failed`: its last start in the alert log ended with an error about memory.
    pub state: StoppedState,
    /// Whether oratab has the instance start at boot.
    pub starts_at_boot: bool,
    pub verdict: Severity,
    pub message: String,
    pub hint: Option<String>,
    pub oracle_home: String,
    pub version: Option<String>,
    /// `use_large_pages` of the parameter file or the alert log; null if neither shows it.
    pub use_large_pages: Option<String>,
    pub memory_target: bool,
    pub huge_page_size: Option<PageSize>,
    /// The huge pages that the next start needs; null if unknown, 0 if it asks for none.
    pub pages_needed: Option<Pages>,
    /// The pages that the next start needs and the pool could not give now; null if unknown.
    pub pages_missing: Option<Pages>,
    pub cause: Option<Cause>,
    pub restart_outlook: Outlook,
    pub recommended_nr_hugepages: Option<Pages>,
    pub notes: Vec<String>,
}

/// The shared memory in pages of one size.
#[derive(Debug, Serialize)]
pub struct PageSizeShare {
    /// The page size in bytes; null if the kernel does not report it.
    pub page_size: Option<PageSize>,
    pub bytes: Bytes,
}

/// A pool of the host or of a NUMA node.
#[derive(Debug, Serialize)]
pub struct PoolOutput {
    #[serde(flatten)]
    pub pool: PoolRecord,
    /// Pages that the instances hold; null for a node, and where one could not be inspected.
    pub held_by_instances: Option<Pages>,
    /// Pages that other processes hold or have reserved; likewise.
    pub held_by_others: Option<Pages>,
    /// Those of them that no service account holds, which are no reason for more pages; null for a node.
    pub held_by_strangers: Option<Pages>,
    pub recommended_nr_hugepages: Option<Pages>,
}

/// A timestamp: `2026-11-21T10:00:00Z`.
pub fn time(at: SystemTime) -> String {
    humantime::format_rfc3339_seconds(at).to_string()
}

pub fn instance(instance: &Instance, sizings: &[Sizing]) -> InstanceRow {
    let status = status_row(instance, sizings);
    let memlock = instance.memory.memlock;
    InstanceRow {
        kind: instance.id.kind().to_string(),
        name: instance.id.name.clone(),
        pid: instance.id.pid,
        crash_outlook: status.crash_outlook,
        status,
        processes: instance.memory.page_tables.processes,
        page_tables_total: instance.memory.page_tables.total,
        memlock: memlock.and_then(Rlimit::bytes),
        memlock_unlimited: memlock.map(|limit| limit == Rlimit::Unlimited),
        version: instance.id.version.clone(),
        oracle_home: instance.id.oracle().and_then(|oracle| oracle.home.clone()),
        data_directory: instance.id.postgresql().and_then(|server| server.directory.clone()),
        started: instance.id.started.map(time),
        evidence: instance.evidence.clone(),
        notes: instance.notes.clone(),
        by_page_size: instance.memory.shared.iter().flat_map(of_sizes).collect(),
    }
}

fn of_sizes(memory: &InstanceMemory) -> Vec<PageSizeShare> {
    memory.by_page_size().into_iter().map(|(page_size, bytes)| PageSizeShare { page_size, bytes }).collect()
}

pub fn pool(row: &PoolRow, sizings: &[Sizing]) -> PoolOutput {
    let sizing = Sizing::of_size(sizings, row.pool.page_size).filter(|_| row.node.is_none());
    let held = |sizing: &Sizing| sizing.needs.iter().fold(Pages(0), |sum, need| sum.saturating_add(need.held));
    // Without a number, somebody's pages are not known.
    let known = sizing.filter(|sizing| sizing.recommended.is_some());
    PoolOutput {
        pool: pool_record(row),
        held_by_instances: known.map(held),
        held_by_others: known.map(|sizing| sizing.others),
        held_by_strangers: sizing.map(|sizing| sizing.strangers.pages),
        recommended_nr_hugepages: sizing.and_then(|sizing| sizing.recommended),
    }
}

/// The columns that JSON and the file for Oracle have.
pub fn pool_record(row: &PoolRow) -> PoolRecord {
    let pool = &row.pool;
    PoolRecord {
        page_size: Some(pool.page_size.bytes()),
        node: row.node.map(u64::from),
        is_default: Some(row.is_default),
        nr_hugepages: Some(pool.nr),
        free_hugepages: Some(pool.free),
        resv_hugepages: pool.resv,
        surplus_hugepages: pool.surplus,
        nr_overcommit_hugepages: pool.overcommit,
        available_hugepages: pool.available(),
        cgroup_limit: row.limit.as_ref().map(|limit| limit.limit),
        cgroup_usage: row.limit.as_ref().map(|limit| limit.usage),
        obtainable_now: row.obtainable_now,
    }
}

pub fn stopped(one: &StoppedOracle, survey: &Survey, sizings: &[Sizing]) -> StoppedRow {
    let forecast = one.forecast.as_ref();
    let size = survey.host.default_page_size();
    let sizing = size.and_then(|size| Sizing::of_size(sizings, size));
    StoppedRow {
        kind: one.kind.to_string(),
        name: one.name.clone(),
        state: one.state,
        starts_at_boot: one.starts_at_boot,
        verdict: one.severity(),
        message: one.message(),
        hint: one.hint(sizings),
        oracle_home: one.home.clone(),
        version: one.last_start.as_ref().and_then(|start| start.version.clone()),
        use_large_pages: one.use_large_pages.clone(),
        memory_target: one.memory_target.is_some(),
        huge_page_size: size,
        pages_needed: one.wants.pages(),
        pages_missing: forecast.and_then(|forecast| forecast.missing),
        cause: forecast.and_then(|forecast| forecast.cause),
        restart_outlook: one.outlook(),
        recommended_nr_hugepages: sizing.and_then(|sizing| sizing.recommended),
        notes: one.notes.clone(),
    }
}
