//! Converts a survey of the host to the columns that Oracle reads.

use std::time::Duration;

use hugepage_assess::assessment::{Finding, Sizing, Status};
use hugepage_assess::model::{Landing, Product};
use hugepage_host::host_advice::verdict::HostVerdict;
use hugepage_host::host_advice::{self, HostRecommendation};
use hugepage_host::status_row::status_row;
use hugepage_host::{Instance, ServerProduct, Survey};
use hugepage_kernel::mapping::maps::Mapping;
use hugepage_kernel::mapping::sysvipc;
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::memory::sysctl;
use hugepage_kernel::proc::namespace;
use hugepage_kernel::proc::rlimit::Rlimit;
use hugepage_kernel::{Bytes, PageSize, Root};
use hugepage_oracle::readers::LastStart;
use hugepage_oracle::running::RunningOracle;
use hugepage_oracle::stopped::StoppedOracle;

use crate::oracle::columns::HostRecord;
use crate::oracle::instance_columns::{FindingRecord, InstanceRecord, SegmentRecord};
use crate::oracle::log_starts::{LogStarts, logged_errors};
use crate::oracle::record_line::seconds;
use crate::oracle::snapshot::OracleSnapshot;
use crate::output::rows;

/// The snapshot of a survey. `interval` is the time until the next one; `None` if none follows. `logs`: the starts of the
/// instances, which are read again only after another start.
pub fn from_survey(
    root: &Root,
    survey: &Survey,
    sizings: &[Sizing],
    interval: Option<Duration>,
    logs: &mut LogStarts,
) -> OracleSnapshot {
    let recommendations = host_advice::recommendations(survey, sizings);
    OracleSnapshot {
        taken_at: survey.host.taken_at,
        host_name: survey.host.host_name.clone().unwrap_or_default(),
        host: host_record(root, survey, sizings, interval),
        pools: survey.host.pools.iter().map(rows::pool_record).collect(),
        instances: survey
            .instances
            .iter()
            .map(|instance| instance_record(survey, sizings, instance))
            .chain(survey.host.stopped.iter().map(|stopped| stopped_record(survey, sizings, stopped)))
            .collect(),
        findings: (1..).zip(&recommendations).map(|(priority, one)| finding_record(survey, priority, one)).collect(),
        segments: oracles(survey).flat_map(|(instance, _)| segment_records(root, instance)).collect(),
        starts: logs.records(root, survey),
    }
}

fn host_record(root: &Root, survey: &Survey, sizings: &[Sizing], interval: Option<Duration>) -> HostRecord {
    let meminfo = survey.host.meminfo.as_ref();
    let default = meminfo.and_then(|meminfo| meminfo.huge_page_size);
    let running = |name| sysctl::running(root, name).ok().flatten();
    HostRecord {
        interval_seconds: interval.map(|interval| interval.as_secs().max(1)),
        sidecar_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        verdict: survey
            .instances
            .first()
            .map(|_| ())
            .or(survey.host.stopped.first().map(|_| ()))
            .map(|()| HostVerdict::of_survey(survey, sizings).severity.to_string()),
        memory_total: meminfo.and_then(|meminfo| meminfo.mem_total),
        memory_available: meminfo.and_then(|meminfo| meminfo.mem_available),
        page_tables_host: meminfo.and_then(|meminfo| meminfo.page_tables),
        huge_page_size: default.map(|size| size.bytes()),
        hugetlb: meminfo.and_then(|meminfo| meminfo.hugetlb),
        recommended_nr_hugepages: sizings
            .iter()
            .find(|sizing| Some(sizing.page_size) == default)
            .and_then(|sizing| sizing.recommended),
        transparent_hugepage: survey.host.transparent_hugepage.clone(),
        hugetlb_shm_group: running("vm.hugetlb_shm_group").and_then(|group| group.parse().ok()),
        kernel: running("kernel.osrelease"),
        notes: joined(&survey.host.notes),
        sga_total: total(survey, |instance, _| instance.status.facts.segment_size()),
        mga_total: total(survey, |_, oracle| oracle.managed_global_area),
        pga_limit_total: total(survey, |_, oracle| oracle.last_start.as_ref()?.parameters.size("pga_aggregate_limit")),
        ..HostRecord::default()
    }
}

fn instance_record(survey: &Survey, sizings: &[Sizing], instance: &Instance) -> InstanceRecord {
    let row = status_row(instance, sizings);
    let memlock = instance.memory.memlock;
    let Status { facts, findings, .. } = &instance.status;
    let start = instance.id.oracle().and_then(|oracle| oracle.last_start.as_ref());
    let loss = facts.past.loss.as_ref().filter(|_| findings.iter().any(|(_, finding)| is_regression(finding)));
    InstanceRecord {
        kind: Some(instance.id.kind().to_string()),
        sid: Some(instance.id.name.clone()),
        verdict: Some(row.verdict.to_string()),
        message: Some(row.message),
        hint: row.hint,
        sga_in_huge_pages: row.in_huge_pages,
        landed_in: Some(row.landed_in.to_string()),
        mapping: row.mapping,
        page_size: row.page_size,
        cause: row.cause.map(|cause| cause.to_string()),
        shared_memory: row.shared_memory,
        huge_page_bytes: row.huge_page_bytes,
        base_page_bytes: row.base_page_bytes,
        use_large_pages: row.huge_pages.or(row.use_large_pages).map(str::to_owned),
        huge_page_size: row.huge_page_size,
        memlock: memlock.and_then(Rlimit::bytes),
        memlock_unlimited: memlock.map(|limit| limit == Rlimit::Unlimited),
        pages_needed: row.pages_needed,
        pages_missing: row.pages_missing,
        page_tables_host: row.page_tables_host,
        restart_outlook: Some(row.restart_outlook.to_string()),
        recommended_nr_hugepages: row.recommended_nr_hugepages,
        notes: joined(&instance.notes),
        pid: u64::try_from(instance.id.pid).ok(),
        home: match &instance.id.product {
            ServerProduct::PostgreSql(server) => server.directory.clone(),
            ServerProduct::Oracle(oracle) => oracle.home.clone(),
        },
        started_utc: instance.id.started.and_then(seconds),
        processes: Some(instance.memory.page_tables.processes).filter(|count| *count > 0),
        page_tables_total: instance.memory.page_tables.total,
        evidence: (!instance.evidence.is_empty()).then(|| instance.evidence.join("; ")),
        memory_target: match facts.requested.product {
            Product::Oracle { memory_target, .. } => Some(memory_target),
            Product::PostgreSql => None,
        },
        version: instance.id.version.clone(),
        regression: Some(loss.is_some()),
        regression_utc: loss.and_then(|loss| seconds(loss.at)),
        regression_detail: loss.map(|loss| loss.lost.to_string()),
        state: Some("running".to_owned()),
        instance_host: instance.id.place.host_name.clone(),
        ..beside_row(survey, row.pool.as_ref(), start, facts.pool_state.huge_page_size)
    }
}

/// An instance that does not run: what its next start would get of the pool as it is.
fn stopped_record(survey: &Survey, sizings: &[Sizing], stopped: &StoppedOracle) -> InstanceRecord {
    let row = rows::stopped(stopped, survey, sizings);
    let size = survey.host.default_page_size();
    InstanceRecord {
        kind: Some(row.kind),
        sid: Some(row.name),
        verdict: Some(row.verdict.to_string()),
        message: Some(row.message),
        hint: row.hint,
        landed_in: Some(Landing::Unknown.to_string()),
        cause: row.cause.map(|cause| cause.to_string()),
        use_large_pages: row.use_large_pages,
        huge_page_size: row.huge_page_size.map(PageSize::bytes),
        pages_needed: row.pages_needed,
        pages_missing: row.pages_missing,
        page_tables_host: survey.host.meminfo.as_ref().and_then(|meminfo| meminfo.page_tables),
        restart_outlook: Some(row.restart_outlook.to_string()),
        recommended_nr_hugepages: row.recommended_nr_hugepages,
        notes: joined(&row.notes),
        home: Some(row.oracle_home),
        memory_target: Some(row.memory_target),
        version: row.version,
        state: Some(row.state.to_string()),
        starts_at_boot: Some(row.starts_at_boot),
        ..beside_row(survey, size.and_then(|size| survey.host.pool(size)), stopped.last_start.as_ref(), size)
    }
}

/// What an instance has whether it runs or not: the pool of `size`, and what its last start logged of that.
fn beside_row(
    survey: &Survey,
    pool: Option<&Pool>,
    start: Option<&LastStart>,
    size: Option<PageSize>,
) -> InstanceRecord {
    let logged = start.zip(size).and_then(|(start, size)| start.pages_of(size));
    InstanceRecord {
        nr_hugepages: pool.map(|pool| pool.nr),
        free_hugepages: pool.map(|pool| pool.free),
        resv_hugepages: pool.and_then(|pool| pool.resv),
        surplus_hugepages: pool.and_then(|pool| pool.surplus),
        available_hugepages: pool.and_then(Pool::available),
        transparent_hugepage: survey.host.transparent_hugepage.clone(),
        last_start_available: logged.and_then(|pages| pages.available),
        last_start_expected: logged.and_then(|pages| pages.expected),
        last_start_allocated: logged.and_then(|pages| pages.allocated),
        last_start_errors: start.and_then(logged_errors),
        ..InstanceRecord::default()
    }
}

fn finding_record(survey: &Survey, priority: u64, one: &HostRecommendation) -> FindingRecord {
    let recommendation = one.recommendation.clone();
    let instance = survey.instances.iter().find(|instance| one.instance.as_deref() == Some(&instance.id.name));
    FindingRecord {
        priority: Some(priority),
        kind: instance.map(|instance| instance.id.kind().to_string()),
        sid: one.instance.clone(),
        severity: Some(recommendation.severity.to_string()),
        area: Some(recommendation.area.to_string()),
        setting: Some(recommendation.setting),
        current_value: recommendation.current,
        recommended: recommendation.recommended,
        command: recommendation.command,
        takes_effect: Some(recommendation.takes_effect.to_string()),
        saving: recommendation.saving,
        reason: Some(recommendation.reason),
        instance_host: instance.and_then(|instance| instance.id.place.host_name.clone()),
    }
}

fn oracles(survey: &Survey) -> impl Iterator<Item = (&Instance, &RunningOracle)> {
    survey.instances.iter().filter_map(|instance| Some((instance, instance.id.oracle()?)))
}

/// The sum over the running Oracle instances; `None` if there are none, or one is unknown.
fn total(survey: &Survey, size: impl Fn(&Instance, &RunningOracle) -> Option<Bytes>) -> Option<Bytes> {
    oracles(survey).next()?;
    oracles(survey).try_fold(Bytes(0), |sum, (instance, oracle)| Some(sum.saturating_add(size(instance, oracle)?)))
}

fn segment_records(root: &Root, instance: &Instance) -> Vec<SegmentRecord> {
    /// The kernel's default for the number of segments (SHMMNI).
    const MAX_SEGMENTS: usize = 4096;
    let Some(memory) = &instance.memory.shared else { return Vec::new() };
    let base = root.base_page_size().ok();
    let landed_in = |size: Option<PageSize>| match size {
        Some(_) if size > base => Landing::Hugetlb,
        Some(_) => Landing::Base,
        None => Landing::Unknown,
    };
    let make = |mapping: &Mapping| SegmentRecord {
        kind: Some(instance.id.kind().to_string()),
        sid: Some(instance.id.name.clone()),
        pid: u64::try_from(instance.id.pid).ok(),
        mapping: Some(mapping.name().to_owned()),
        segment_size: Some(mapping.size()),
        page_size: mapping.page_size.map(|size| size.bytes()),
        landed_in: Some(landed_in(mapping.page_size).to_string()),
        instance_host: instance.id.place.host_name.clone(),
        ..SegmentRecord::default()
    };
    if instance.is_amm()
        && let Some(first) = memory.mappings.first()
    {
        let size = memory.mappings.iter().fold(Bytes(0), |sum, mapping| sum.saturating_add(mapping.size()));
        let name = format!("ora_{}_*", instance.id.name);
        return vec![SegmentRecord { mapping: Some(name), segment_size: Some(size), ..make(first) }];
    }
    // In another namespace the same number is another segment.
    let is_ours = namespace::is_own(root, instance.id.pid, "ipc");
    let known = if is_ours { sysvipc::read(root).ok().flatten().unwrap_or_default() } else { Vec::new() };
    let of_segment = |mapping: &Mapping| {
        let is_sysv = mapping.is_sysv();
        let segment = known.iter().find(|segment| is_sysv && segment.shmid == mapping.inode);
        SegmentRecord {
            shmid: is_sysv.then_some(mapping.inode),
            shm_key: segment.map(|segment| format!("0x{:08x}", segment.key)),
            requested_size: segment.map(|segment| segment.size),
            attached: segment.map(|segment| segment.attached),
            ..make(mapping)
        }
    };
    memory.mappings.iter().take(MAX_SEGMENTS).map(of_segment).collect()
}

fn is_regression(finding: &Finding) -> bool {
    matches!(finding, Finding::Regressed(_))
}

fn joined(notes: &[String]) -> Option<String> {
    (!notes.is_empty()).then(|| notes.join("; "))
}
