//! One flat row for each instance and each pool, under the names of `hugepage_status` and `hugepage_pools`. Sizes are
//! bytes, counters pages; what could not be known is null.

use std::time::SystemTime;

use hugepage_core::advise::host::HostRecommendation;
use hugepage_core::advise::{hint, message};
use hugepage_core::assess::{Landing, Product, Sizing};
use hugepage_core::collect::instances::memory::Memory;
use hugepage_core::collect::instances::{Instance, Kind, Survey};
use hugepage_core::collect::pools::PoolRow;
use hugepage_core::read::rlimit::Limit;
use hugepage_core::{Bytes, Pages};
use serde::Serialize;

/// One instance.
#[derive(Debug, Serialize)]
pub struct InstanceRow {
    pub kind: String,
    pub name: String,
    pub pid: i32,
    pub verdict: String,
    pub message: String,
    /// What to do; null also for one that does not count, for nothing is to be set for it.
    pub hint: Option<String>,
    /// `all`, `mixed`, `some`, `none`, `AMM`, `unknown`.
    pub landed: String,
    pub landed_in: String,
    pub page_size: Option<u64>,
    pub cause: Option<String>,
    pub shared_memory: Option<u64>,
    pub in_huge_pages: Option<u64>,
    pub in_base_pages: Option<u64>,
    /// PostgreSQL's `huge_pages` or Oracle's `use_large_pages`, as it would be written.
    pub setting: String,
    pub huge_page_size: Option<u64>,
    pub pages_needed: Option<u64>,
    pub pages_used: Option<u64>,
    pub pages_missing: Option<u64>,
    pub restart_outlook: String,
    pub recommended_nr_hugepages: Option<u64>,
    pub processes: u64,
    pub page_tables: Option<u64>,
    /// What it may lock; null if that is unlimited or unknown.
    pub memlock: Option<u64>,
    pub memlock_unlimited: Option<bool>,
    pub version: Option<String>,
    pub oracle_home: Option<String>,
    pub data_directory: Option<String>,
    pub started: Option<String>,
    /// What the landing was seen in.
    pub evidence: Vec<String>,
    /// Whether it counts for the host's verdict and pools.
    pub counted: bool,
    /// Why it does not, as `runs as alice`; null if it does.
    pub not_counted_because: Option<String>,
    pub notes: Vec<String>,
    /// The shared memory on pages of each size, ascending; empty if it can't be seen.
    pub by_page_size: Vec<OfSize>,
}

/// What is on pages of one size.
#[derive(Debug, Serialize)]
pub struct OfSize {
    /// Null: the kernel does not tell.
    pub page_size: Option<u64>,
    pub bytes: u64,
}

/// One pool.
#[derive(Debug, Serialize)]
pub struct PoolOut {
    pub page_size: u64,
    pub node: Option<u32>,
    pub is_default: bool,
    pub nr_hugepages: u64,
    pub free_hugepages: u64,
    pub resv_hugepages: Option<u64>,
    pub surplus_hugepages: Option<u64>,
    pub nr_overcommit_hugepages: Option<u64>,
    pub available: Option<u64>,
    pub cgroup_limit: Option<u64>,
    pub cgroup_usage: Option<u64>,
    pub obtainable_now: Option<u64>,
    /// Pages that the instances above have; null for a node.
    pub held_by_instances: Option<u64>,
    /// Pages that others have or were promised; null for a node.
    pub held_by_others: Option<u64>,
    pub recommended_nr_hugepages: Option<u64>,
}

/// One thing to set.
#[derive(Debug, Serialize)]
pub struct RecommendationOut {
    pub instance: Option<String>,
    pub severity: String,
    pub area: String,
    pub setting: String,
    pub current: Option<String>,
    pub recommended: Option<String>,
    pub reason: String,
    pub command: Option<String>,
    pub takes_effect: String,
    pub saves: Option<u64>,
}

/// `2026-11-21T10:00:00Z`.
pub fn time(at: SystemTime) -> String {
    humantime::format_rfc3339_seconds(at).to_string()
}

pub fn instance(instance: &Instance, sizings: &[Sizing]) -> InstanceRow {
    let status = &instance.status;
    let facts = &status.facts;
    let segment = facts.segment.as_ref();
    let sizing = facts.huge_page_size.and_then(|size| Sizing::of_size(sizings, size));
    let soft = instance.memlock.and_then(|memlock| memlock.soft);
    let known = segment.filter(|segment| segment.landing != Landing::Unknown);
    InstanceRow {
        kind: instance.kind.to_string(),
        name: instance.name.clone(),
        pid: instance.pid,
        verdict: status.verdict().0.to_string(),
        message: message(status),
        hint: hint(status).filter(|_| instance.counts()),
        landed: instance.landed().to_string(),
        landed_in: instance.landed_in().to_string(),
        page_size: facts.page_size().map(|size| size.bytes().0),
        cause: status.cause.map(|cause| cause.to_string()),
        shared_memory: segment.map(|segment| segment.size.0),
        in_huge_pages: known.map(|segment| segment.in_huge_pages.0),
        in_base_pages: known.map(|segment| segment.in_base_pages().0),
        setting: setting(instance),
        huge_page_size: facts.huge_page_size.map(|size| size.bytes().0),
        pages_needed: pages(status.needed),
        pages_used: segment.map(|_| status.own.0),
        pages_missing: pages(status.missing),
        restart_outlook: status.outlook.to_string(),
        recommended_nr_hugepages: sizing.and_then(|sizing| pages(sizing.recommended)),
        processes: instance.page_tables.processes,
        page_tables: bytes(instance.page_tables.total),
        memlock: bytes(soft.and_then(Limit::bytes)),
        memlock_unlimited: soft.map(|limit| limit == Limit::Unlimited),
        version: instance.version.clone(),
        oracle_home: instance.home.clone(),
        data_directory: instance.directory.clone(),
        started: instance.started.map(time),
        evidence: instance.evidence.iter().map(|&evidence| evidence.to_owned()).collect(),
        counted: instance.counts(),
        not_counted_because: instance.not_counted.clone(),
        notes: instance.notes.clone(),
        by_page_size: instance.memory.iter().flat_map(of_sizes).collect(),
    }
}

fn of_sizes(memory: &Memory) -> Vec<OfSize> {
    let sizes = memory.by_page_size().into_iter();
    sizes.map(|(page, size)| OfSize { page_size: page.map(|page| page.bytes().0), bytes: size.0 }).collect()
}

fn setting(instance: &Instance) -> String {
    let asked = instance.status.facts.asked;
    let text = hugepage_core::advise::message::terms::Terms::of(asked.product).setting(asked.huge_pages);
    debug_assert!(matches!(asked.product, Product::PostgreSql) == (instance.kind == Kind::PostgreSql));
    text.to_owned()
}

pub fn pool(row: &PoolRow, sizings: &[Sizing]) -> PoolOut {
    let pool = &row.pool;
    let sizing = Sizing::of_size(sizings, pool.page_size).filter(|_| row.node.is_none());
    let held = |sizing: &Sizing| sizing.needs.iter().map(|need| need.held.0).sum();
    PoolOut {
        page_size: pool.page_size.bytes().0,
        node: row.node,
        is_default: row.is_default,
        nr_hugepages: pool.nr.0,
        free_hugepages: pool.free.0,
        resv_hugepages: pages(pool.resv),
        surplus_hugepages: pages(pool.surplus),
        nr_overcommit_hugepages: pages(pool.overcommit),
        available: pages(pool.available()),
        cgroup_limit: row.limit.as_ref().map(|limit| limit.limit.0),
        cgroup_usage: row.limit.as_ref().map(|limit| limit.usage.0),
        obtainable_now: pages(row.obtainable_now),
        held_by_instances: sizing.map(held),
        held_by_others: sizing.map(|sizing| sizing.others.0),
        recommended_nr_hugepages: sizing.and_then(|sizing| pages(sizing.recommended)),
    }
}

pub fn recommendation(one: &HostRecommendation) -> RecommendationOut {
    let recommendation = one.recommendation.clone();
    RecommendationOut {
        instance: one.instance.clone(),
        severity: recommendation.severity.to_string(),
        area: recommendation.area.to_string(),
        setting: recommendation.setting,
        current: recommendation.current,
        recommended: recommendation.recommended,
        reason: recommendation.reason,
        command: recommendation.command,
        takes_effect: recommendation.takes_effect.to_string(),
        saves: bytes(recommendation.saves),
    }
}

/// The host's memory (/proc/meminfo).
#[derive(Debug, Serialize)]
pub struct MemoryOut {
    pub total: Option<u64>,
    pub free: Option<u64>,
    pub available: Option<u64>,
    /// Of all processes.
    pub page_tables: Option<u64>,
    /// In huge page pools of every size.
    pub hugetlb: Option<u64>,
}

/// A host with all of it.
#[derive(Debug, Serialize)]
pub struct HostOut {
    pub host_name: Option<String>,
    pub taken_at: String,
    pub verdict: String,
    pub message: String,
    pub memory: Option<MemoryOut>,
    pub instances: Vec<InstanceRow>,
    pub pools: Vec<PoolOut>,
    pub recommendations: Vec<RecommendationOut>,
    pub notes: Vec<String>,
}

pub fn host(survey: &Survey, sizings: &[Sizing]) -> HostOut {
    let (severity, message) = hugepage_core::advise::host::verdict(survey, sizings);
    let recommendations = hugepage_core::advise::host::recommendations(survey, sizings);
    HostOut {
        host_name: survey.host_name.clone(),
        taken_at: time(survey.taken_at),
        verdict: severity.to_string(),
        message,
        memory: survey.meminfo.as_ref().map(|meminfo| MemoryOut {
            total: bytes(meminfo.mem_total),
            free: bytes(meminfo.mem_free),
            available: bytes(meminfo.mem_available),
            page_tables: bytes(meminfo.page_tables),
            hugetlb: bytes(meminfo.hugetlb),
        }),
        instances: survey.instances.iter().map(|one| instance(one, sizings)).collect(),
        pools: survey.pools.iter().map(|row| pool(row, sizings)).collect(),
        recommendations: recommendations.iter().map(recommendation).collect(),
        notes: survey.notes.clone(),
    }
}

fn pages(pages: Option<Pages>) -> Option<u64> {
    pages.map(|pages| pages.0)
}

fn bytes(bytes: Option<Bytes>) -> Option<u64> {
    bytes.map(|bytes| bytes.0)
}
