//! One flat row per instance and pool, with the column names of `hugepage_status` and `hugepage_pools`. Sizes are in bytes,
//! counters in pages; null means unknown.

use std::time::SystemTime;

use hugepage_assess::assessment::Sizing;
use hugepage_assess::pools::PoolRow;
use hugepage_host::host_advice::HostRecommendation;
use hugepage_host::memory::InstanceMemory;
use hugepage_host::status_row::status_row;
use hugepage_host::{Instance, Stranger, Survey};
use hugepage_kernel::proc::rlimit::Rlimit;
use hugepage_kernel::{Bytes, Pages};
use hugepage_oracle::stopped::StoppedOracle;
use serde::Serialize;

/// A running instance.
#[derive(Debug, Serialize)]
pub struct InstanceRow {
    pub kind: String,
    pub name: String,
    pub pid: i32,
    pub verdict: String,
    pub message: String,
    /// The steps that help; null if there are none.
    pub hint: Option<String>,
    pub landed_in: String,
    pub page_size: Option<u64>,
    pub cause: Option<String>,
    pub shared_memory: Option<u64>,
    pub huge_page_bytes: Option<u64>,
    pub base_page_bytes: Option<u64>,
    /// PostgreSQL's setting, as in the configuration file; null if unknown, and for Oracle.
    pub huge_pages: Option<String>,
    /// Oracle's parameter, likewise.
    pub use_large_pages: Option<String>,
    pub huge_page_size: Option<u64>,
    pub pages_needed: Option<u64>,
    pub pages_held: Option<u64>,
    pub pages_missing: Option<u64>,
    pub restart_outlook: String,
    pub recommended_nr_hugepages: Option<u64>,
    pub processes: u64,
    /// The page tables of all its processes.
    pub page_tables_total: Option<u64>,
    /// The memlock limit; null if unlimited or unknown.
    pub memlock: Option<u64>,
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
    pub crash_outlook: Option<String>,
}

/// An Oracle instance of oratab that does not run.
#[derive(Debug, Serialize)]
pub struct StoppedRow {
    pub kind: String,
    pub name: String,
    /// `stopped`, or `failed`: its last start in the alert log ended with an error about memory.
    pub state: String,
    /// Whether oratab has the instance start at boot.
    pub starts_at_boot: bool,
    pub verdict: String,
    pub message: String,
    pub hint: Option<String>,
    pub oracle_home: String,
    pub version: Option<String>,
    /// `use_large_pages` of the parameter file or the alert log; null if neither shows it.
    pub use_large_pages: Option<String>,
    pub memory_target: bool,
    pub huge_page_size: Option<u64>,
    /// The huge pages that the next start needs; null if unknown, 0 if it asks for none.
    pub pages_needed: Option<u64>,
    /// The pages that the next start needs and the pool could not give now; null if unknown.
    pub pages_missing: Option<u64>,
    pub cause: Option<String>,
    pub restart_outlook: String,
    pub recommended_nr_hugepages: Option<u64>,
    pub notes: Vec<String>,
}

/// The shared memory in pages of one size.
#[derive(Debug, Serialize)]
pub struct PageSizeShare {
    /// The page size in bytes; null if the kernel does not report it.
    pub page_size: Option<u64>,
    pub bytes: u64,
}

/// A pool of the host or of a NUMA node.
#[derive(Debug, Serialize)]
pub struct PoolOutput {
    pub page_size: u64,
    pub node: Option<u32>,
    pub is_default: bool,
    pub nr_hugepages: u64,
    pub free_hugepages: u64,
    pub resv_hugepages: Option<u64>,
    pub surplus_hugepages: Option<u64>,
    pub nr_overcommit_hugepages: Option<u64>,
    pub available_hugepages: Option<u64>,
    pub cgroup_limit: Option<u64>,
    pub cgroup_usage: Option<u64>,
    pub obtainable_now: Option<u64>,
    /// Pages that the instances hold; null for a node.
    pub held_by_instances: Option<u64>,
    /// Pages that other processes hold or have reserved; null for a node.
    pub held_by_others: Option<u64>,
    /// Those of them that no service account holds, which are no reason for more pages; null for a node.
    pub held_by_strangers: Option<u64>,
    pub recommended_nr_hugepages: Option<u64>,
}

/// A recommendation for the host or an instance.
#[derive(Debug, Serialize)]
pub struct RecommendationOutput {
    pub instance: Option<String>,
    pub severity: String,
    pub area: String,
    pub setting: String,
    pub current: Option<String>,
    pub recommended: Option<String>,
    pub reason: String,
    pub command: Option<String>,
    pub takes_effect: String,
    pub saving: Option<u64>,
    /// The finding that leads to it; null for one that no finding leads to.
    pub finding: Option<&'static str>,
    /// Whether it is a step of an instance's hint.
    #[serde(skip)]
    pub is_in_hint: bool,
}

/// A process that calls itself a server and does not count for the host's verdict and pools.
#[derive(Debug, Serialize)]
pub struct StrangerRow {
    pub pid: i32,
    pub uid: Option<u32>,
    /// The name of its program, which it can choose.
    pub name: String,
    /// The resident memory of the process.
    pub resident: u64,
    /// The reason, as `runs as alice`.
    pub reason: String,
}

impl From<&Stranger> for StrangerRow {
    fn from(one: &Stranger) -> Self {
        let Stranger { pid, uid, resident, .. } = *one;
        Self { pid, uid, name: one.name.clone(), resident: resident.0, reason: one.why.clone() }
    }
}

/// A timestamp: `2026-11-21T10:00:00Z`.
pub fn time(at: SystemTime) -> String {
    humantime::format_rfc3339_seconds(at).to_string()
}

pub fn instance(instance: &Instance, sizings: &[Sizing]) -> InstanceRow {
    let row = status_row(instance, sizings);
    let is_oracle = instance.id.oracle().is_some();
    let soft = instance.memory.memlock.and_then(|memlock| memlock.soft);
    InstanceRow {
        kind: instance.id.kind().to_string(),
        name: instance.id.name.clone(),
        pid: instance.id.pid,
        verdict: row.verdict.to_string(),
        message: row.message,
        hint: row.hint,
        landed_in: row.landed_in.to_string(),
        page_size: row.page_size.map(|size| size.bytes().0),
        cause: row.cause.map(|cause| cause.to_string()),
        shared_memory: bytes(row.shared_memory),
        huge_page_bytes: bytes(row.huge_page_bytes),
        base_page_bytes: bytes(row.base_page_bytes),
        huge_pages: row.setting.filter(|_| !is_oracle).map(str::to_owned),
        use_large_pages: row.setting.filter(|_| is_oracle).map(str::to_owned),
        huge_page_size: row.huge_page_size.map(|size| size.bytes().0),
        pages_needed: pages(row.needed),
        pages_held: pages(row.own),
        pages_missing: pages(row.missing),
        restart_outlook: row.outlook.to_string(),
        recommended_nr_hugepages: pages(row.recommended),
        processes: instance.memory.page_tables.processes,
        page_tables_total: bytes(instance.memory.page_tables.total),
        memlock: bytes(soft.and_then(Rlimit::bytes)),
        memlock_unlimited: soft.map(|limit| limit == Rlimit::Unlimited),
        version: instance.id.version.clone(),
        oracle_home: instance.id.oracle().and_then(|oracle| oracle.home.clone()),
        data_directory: instance.id.postgresql().and_then(|server| server.directory.clone()),
        started: instance.id.started.map(time),
        evidence: instance.evidence.iter().map(|&evidence| evidence.to_owned()).collect(),
        notes: instance.notes.clone(),
        by_page_size: instance.memory.shared.iter().flat_map(of_sizes).collect(),
        crash_outlook: row.crash_outlook.map(|outlook| outlook.to_string()),
    }
}

fn of_sizes(memory: &InstanceMemory) -> Vec<PageSizeShare> {
    let sizes = memory.by_page_size().into_iter();
    sizes.map(|(page, size)| PageSizeShare { page_size: page.map(|page| page.bytes().0), bytes: size.0 }).collect()
}

pub fn pool(row: &PoolRow, sizings: &[Sizing]) -> PoolOutput {
    let pool = &row.pool;
    let sizing = Sizing::of_size(sizings, pool.page_size).filter(|_| row.node.is_none());
    let held = |sizing: &Sizing| sizing.needs.iter().map(|need| need.held.0).sum();
    PoolOutput {
        page_size: pool.page_size.bytes().0,
        node: row.node,
        is_default: row.is_default,
        nr_hugepages: pool.nr.0,
        free_hugepages: pool.free.0,
        resv_hugepages: pages(pool.resv),
        surplus_hugepages: pages(pool.surplus),
        nr_overcommit_hugepages: pages(pool.overcommit),
        available_hugepages: pages(pool.available()),
        cgroup_limit: row.limit.as_ref().map(|limit| limit.limit.0),
        cgroup_usage: row.limit.as_ref().map(|limit| limit.usage.0),
        obtainable_now: pages(row.obtainable_now),
        held_by_instances: sizing.map(held),
        held_by_others: sizing.map(|sizing| sizing.others.0),
        held_by_strangers: sizing.map(|sizing| sizing.strangers.pages.0),
        recommended_nr_hugepages: sizing.and_then(|sizing| pages(sizing.recommended)),
    }
}

pub fn recommendation(one: &HostRecommendation) -> RecommendationOutput {
    let recommendation = one.recommendation.clone();
    RecommendationOutput {
        instance: one.instance.clone(),
        severity: recommendation.severity.to_string(),
        area: recommendation.area.to_string(),
        setting: recommendation.setting,
        current: recommendation.current,
        recommended: recommendation.recommended,
        reason: recommendation.reason,
        command: recommendation.command,
        takes_effect: recommendation.takes_effect.to_string(),
        saving: bytes(recommendation.saves),
        finding: recommendation.finding,
        is_in_hint: one.is_in_hint,
    }
}

pub fn stopped(one: &StoppedOracle, survey: &Survey, sizings: &[Sizing]) -> StoppedRow {
    let forecast = one.forecast.as_ref();
    let size = survey.default_page_size();
    StoppedRow {
        kind: one.kind.to_string(),
        name: one.name.clone(),
        state: one.state.to_string(),
        starts_at_boot: one.starts_at_boot,
        verdict: one.severity().to_string(),
        message: one.message(),
        hint: one.hint(sizings),
        oracle_home: one.home.clone(),
        version: one.last_start.as_ref().and_then(|start| start.version.clone()),
        use_large_pages: one.use_large_pages.clone(),
        memory_target: one.memory_target,
        huge_page_size: size.map(|size| size.bytes().0),
        pages_needed: pages(one.wants.pages()),
        pages_missing: pages(forecast.and_then(|forecast| forecast.missing)),
        cause: forecast.and_then(|forecast| forecast.cause).map(|cause| cause.to_string()),
        restart_outlook: one.outlook().to_string(),
        recommended_nr_hugepages: pages(
            size.and_then(|size| Sizing::of_size(sizings, size)).and_then(|sizing| sizing.recommended),
        ),
        notes: one.notes.clone(),
    }
}

pub(super) fn pages(pages: Option<Pages>) -> Option<u64> {
    pages.map(|pages| pages.0)
}

pub(super) fn bytes(bytes: Option<Bytes>) -> Option<u64> {
    bytes.map(|bytes| bytes.0)
}
