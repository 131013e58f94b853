//! Converts a survey of the host to the columns that Oracle reads.

use std::time::Duration;

use hugepage_assess::assessment::{Finding, Sizing, Status};
use hugepage_assess::columns::{NamedValue, fields};
use hugepage_assess::model::{Landing, Product};
use hugepage_assess::pools::{PoolColumns, counters};
use hugepage_assess::row;
use hugepage_assess::status_row::beside;
use hugepage_host::host_advice::verdict::HostVerdict;
use hugepage_host::host_advice::{self, HostRecommendation};
use hugepage_host::{Instance, Survey};
use hugepage_kernel::mapping::maps::Mapping;
use hugepage_kernel::mapping::sysvipc;
use hugepage_kernel::memory::sysctl;
use hugepage_kernel::proc::namespace;
use hugepage_kernel::{Bytes, PageSize, Root};
use hugepage_oracle::readers::LastStart;
use hugepage_oracle::running::RunningOracle;
use hugepage_oracle::stopped::StoppedOracle;

use crate::oracle::columns::{HostRecord, PoolRecord};
use crate::oracle::instance_columns::{FindingRecord, InstanceRecord, SegmentRecord};
use crate::oracle::log_starts::{LogStarts, logged_errors};
use crate::oracle::record_line::seconds;
use crate::oracle::schema::FileRecord;
use crate::oracle::snapshot::OracleSnapshot;
use crate::output::rows::{InstanceRow, StoppedRow};

/// The snapshot of a survey. `interval`: the time until the next one; `None` if none follows. `logs`: the starts of the instances.
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
        pools: survey.host.pools.iter().map(|row| PoolRecord::named(fields(&PoolColumns::new(row)))).collect(),
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
    let row = InstanceRow::new(instance, sizings);
    let Status { facts, findings, .. } = &instance.status;
    let start = instance.id.oracle().and_then(|oracle| oracle.last_start.as_ref());
    let loss = facts.past.loss.as_ref().filter(|_| findings.iter().any(|(_, finding)| is_regression(finding)));
    let of_start = of_start(survey, start, facts.pool_state.huge_page_size);
    InstanceRecord {
        sid: Some(instance.id.name.clone()),
        sga_in_huge_pages: row.status.landed_in.is_hugetlb(),
        use_large_pages: row.status.huge_pages.or(row.status.use_large_pages).map(str::to_owned),
        home: row.data_directory.clone().or_else(|| row.oracle_home.clone()),
        started_utc: instance.id.started.and_then(seconds),
        processes: Some(row.processes).filter(|count| *count > 0),
        memory_target: match facts.requested.product {
            Product::Oracle { memory_target, .. } => Some(memory_target),
            Product::PostgreSql => None,
        },
        regression: Some(loss.is_some()),
        regression_utc: loss.and_then(|loss| seconds(loss.at)),
        regression_detail: loss.map(|loss| loss.lost.to_string()),
        state: Some("running".to_owned()),
        instance_host: instance.id.place.host_name.clone(),
        ..InstanceRecord::named(fields(&row).chain(beside(&instance.status)).chain(of_start))
    }
}

/// An instance that does not run: what its next start would get of the pool as it is.
fn stopped_record(survey: &Survey, sizings: &[Sizing], stopped: &StoppedOracle) -> InstanceRecord {
    let row = StoppedRow::new(stopped, survey, sizings);
    let size = survey.host.default_page_size();
    let pool = size.and_then(|size| survey.host.pool(size));
    let of_start = of_start(survey, stopped.last_start.as_ref(), size);
    InstanceRecord {
        sid: Some(stopped.name.clone()),
        landed_in: Some(Landing::Unknown.to_string()),
        page_tables_host: survey.host.meminfo.as_ref().and_then(|meminfo| meminfo.page_tables),
        home: Some(stopped.home.clone()),
        ..InstanceRecord::named(fields(&row).chain(counters(pool)).chain(of_start))
    }
}

/// What an instance has whether it runs or not: what its last start logged of the pages of `size`.
fn of_start(survey: &Survey, start: Option<&LastStart>, size: Option<PageSize>) -> [NamedValue; 5] {
    let logged = start.zip(size).and_then(|(start, size)| start.pages_of(size));
    row! {
        transparent_hugepage: survey.host.transparent_hugepage,
        last_start_available: logged.and_then(|pages| pages.available),
        last_start_expected: logged.and_then(|pages| pages.expected),
        last_start_allocated: logged.and_then(|pages| pages.allocated),
        last_start_errors: start.and_then(logged_errors),
    }
}

fn finding_record(survey: &Survey, priority: u64, one: &HostRecommendation) -> FindingRecord {
    let instance = survey.instances.iter().find(|instance| one.instance.as_deref() == Some(&instance.id.name));
    FindingRecord {
        priority: Some(priority),
        kind: instance.map(|instance| instance.id.kind()),
        sid: one.instance.clone(),
        current_value: one.recommendation.current.clone(),
        instance_host: instance.and_then(|instance| instance.id.place.host_name.clone()),
        ..FindingRecord::named(fields(&one.recommendation))
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
        kind: Some(instance.id.kind()),
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
