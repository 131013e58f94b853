//! What a survey of the host says, in the columns that Oracle reads.

use std::time::Duration;

use hugepage_core::advise::host::{self, HostRecommendation};
use hugepage_core::advise::message::terms::Terms;
use hugepage_core::advise::{hint, message};
use hugepage_core::assess::{self, Landing, Product, Segment, Sizing};
use hugepage_core::collect::instances::{self, Landed, Survey};
use hugepage_core::collect::pools::PoolRow;
use hugepage_core::read::rlimit::Limit;
use hugepage_core::read::{Root, sysctl};
use humantime::parse_rfc3339_weak;

use crate::oracle::columns::{Finding, Host, Instance, Pool};
use crate::oracle::snapshot::Snapshot;

/// The snapshot of a survey. `interval`: until the next one; `None` if none is due.
pub fn snapshot(root: &Root, survey: &Survey, sizings: &[Sizing], interval: Option<Duration>) -> Snapshot {
    let recommendations = host::recommendations(survey, sizings);
    Snapshot {
        taken_at: survey.taken_at,
        host_name: survey.host_name.clone().unwrap_or_default(),
        host: of_host(root, survey, sizings, interval),
        pools: survey.pools.iter().map(of_pool).collect(),
        instances: survey.counted().map(|instance| of_instance(survey, sizings, instance)).collect(),
        findings: (1..).zip(&recommendations).map(|(priority, one)| of_finding(survey, priority, one)).collect(),
    }
}

fn of_host(root: &Root, survey: &Survey, sizings: &[Sizing], interval: Option<Duration>) -> Host {
    let meminfo = survey.meminfo.as_ref();
    let default = meminfo.and_then(|meminfo| meminfo.huge_page_size);
    let running = |name| sysctl::running(root, name).ok().flatten();
    Host {
        interval_seconds: interval.map(|interval| interval.as_secs()),
        sidecar_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        verdict: survey.counted().map(|instance| instance.status.verdict().0).max().map(|grave| grave.to_string()),
        memory_total: meminfo.and_then(|meminfo| meminfo.mem_total),
        memory_available: meminfo.and_then(|meminfo| meminfo.mem_available),
        page_tables: meminfo.and_then(|meminfo| meminfo.page_tables),
        huge_page_size: default.map(|size| size.bytes()),
        hugetlb: meminfo.and_then(|meminfo| meminfo.hugetlb),
        recommended_nr_hugepages: sizings
            .iter()
            .find(|sizing| Some(sizing.page_size) == default)
            .and_then(|sizing| sizing.recommended),
        transparent_hugepage: survey.transparent_hugepage.clone(),
        hugetlb_shm_group: running("vm.hugetlb_shm_group").and_then(|group| group.parse().ok()),
        kernel: running("kernel.osrelease"),
        notes: joined(&survey.notes),
        ..Host::default()
    }
}

fn of_pool(row: &PoolRow) -> Pool {
    let pool = &row.pool;
    Pool {
        page_size: Some(pool.page_size.bytes()),
        node: row.node.map(u64::from),
        is_default: Some(row.is_default),
        nr_hugepages: Some(pool.nr),
        free_hugepages: Some(pool.free),
        resv_hugepages: pool.resv,
        surplus_hugepages: pool.surplus,
        nr_overcommit_hugepages: pool.overcommit,
        available: pool.available(),
        cgroup_limit: row.limit.as_ref().map(|limit| limit.limit),
        cgroup_usage: row.limit.as_ref().map(|limit| limit.usage),
        obtainable_now: row.obtainable_now,
    }
}

fn of_instance(survey: &Survey, sizings: &[Sizing], instance: &instances::Instance) -> Instance {
    let status = &instance.status;
    let facts = &status.facts;
    let segment = facts.segment.as_ref();
    // Where the kernel did not tell, what is not known to be in huge pages is not known to be in base pages either.
    let known = segment.filter(|segment| segment.landing != Landing::Unknown);
    let landed = instance.landed();
    let pool = facts.pool.known();
    let soft = instance.memlock.and_then(|memlock| memlock.soft);
    let loss = facts.loss.as_ref().filter(|_| status.findings.iter().any(|(_, finding)| is_regression(finding)));
    let setting = Terms::of(facts.asked.product).setting(facts.asked.huge_pages);
    Instance {
        kind: Some(instance.kind.to_string()),
        sid: Some(instance.name.clone()),
        verdict: Some(status.verdict().0.to_string()),
        message: Some(message(status)),
        hint: hint(status),
        sga_in_huge_pages: match landed {
            Landed::All => Some(true),
            Landed::Mixed | Landed::Nothing | Landed::Amm => Some(false),
            Landed::Some | Landed::Unknown => None,
        },
        landed_in: Some(instance.landed_in().to_string()),
        mapping: segment.map(|segment| segment.name.clone()),
        page_size: facts.page_size().map(|size| size.bytes()),
        cause: status.cause.map(|cause| cause.to_string()),
        shared_memory: segment.map(|segment| segment.size),
        huge_page_bytes: known.map(|segment| segment.in_huge_pages),
        base_page_bytes: known.map(Segment::in_base_pages),
        use_large_pages: setting.split_once(" = ").map(|(_, value)| value.to_owned()),
        huge_page_size: facts.huge_page_size.map(|size| size.bytes()),
        memlock: soft.and_then(Limit::bytes),
        memlock_unlimited: soft.map(|limit| limit == Limit::Unlimited),
        pages_needed: status.needed,
        pages_missing: status.missing,
        nr_hugepages: pool.map(|pool| pool.nr),
        free_hugepages: pool.map(|pool| pool.free),
        resv_hugepages: pool.and_then(|pool| pool.resv),
        surplus_hugepages: pool.and_then(|pool| pool.surplus),
        available_hugepages: pool.and_then(|pool| pool.available()),
        page_tables: survey.meminfo.as_ref().and_then(|meminfo| meminfo.page_tables),
        transparent_hugepage: survey.transparent_hugepage.clone(),
        restart_outlook: Some(status.outlook.to_string()),
        recommended_nr_hugepages: facts
            .huge_page_size
            .and_then(|size| Sizing::of_size(sizings, size))
            .and_then(|sizing| sizing.recommended),
        notes: joined(&instance.notes),
        pid: u64::try_from(instance.pid).ok(),
        home: instance.home.clone().or_else(|| instance.directory.clone()),
        started_utc: instance.started,
        processes: Some(instance.page_tables.processes),
        instance_page_tables: instance.page_tables.total,
        evidence: (!instance.evidence.is_empty()).then(|| instance.evidence.join("; ")),
        memory_target: match facts.asked.product {
            Product::Oracle { memory_target, .. } => Some(memory_target),
            Product::PostgreSql => None,
        },
        version: instance.version.clone(),
        regression: Some(loss.is_some()),
        regression_utc: loss.and_then(|loss| parse_rfc3339_weak(loss.at.trim_end_matches(" UTC")).ok()),
        regression_detail: loss.map(|loss| loss.lost.what.clone()),
    }
}

fn of_finding(survey: &Survey, priority: u64, one: &HostRecommendation) -> Finding {
    let recommendation = one.recommendation.clone();
    let of = survey.counted().find(|instance| one.instance.as_deref() == Some(&instance.name));
    Finding {
        priority: Some(priority),
        kind: of.map(|instance| instance.kind.to_string()),
        sid: one.instance.clone(),
        severity: Some(recommendation.severity.to_string()),
        area: Some(recommendation.area.to_string()),
        setting: Some(recommendation.setting),
        current_value: recommendation.current,
        recommended: recommendation.recommended,
        command: recommendation.command,
        takes_effect: Some(recommendation.takes_effect.to_string()),
        saves: recommendation.saves,
        reason: Some(recommendation.reason),
    }
}

fn is_regression(finding: &assess::Finding) -> bool {
    matches!(finding, assess::Finding::Regressed(_))
}

fn joined(notes: &[String]) -> Option<String> {
    (!notes.is_empty()).then(|| notes.join("; "))
}
