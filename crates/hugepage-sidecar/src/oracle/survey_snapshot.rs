//! Converts a survey of the host to the columns that Oracle reads.

use std::time::Duration;

use hugepage_assess::assessment::{Finding, Status};
use hugepage_assess::columns::{NamedValue, fields};
use hugepage_assess::model::{Landing, Product};
use hugepage_assess::pools::{PoolColumns, counters};
use hugepage_assess::row;
use hugepage_assess::status_row::beside;
use hugepage_host::host_advice::{self, HostRecommendation};
use hugepage_host::{Instance, Survey};
use hugepage_kernel::mapping::maps::Mapping;
use hugepage_kernel::proc::namespace;
use hugepage_kernel::{Bytes, PageSize, Root};
use hugepage_oracle::readers::LastStart;
use hugepage_oracle::readers::sysvipc;
use hugepage_oracle::stopped::StoppedOracle;
use hugepage_sizing::Sizing;

use crate::oracle::columns::{host_record, pool_record};
use crate::oracle::instance_columns::{finding_record, instance_record, logged_errors, segment_record};
use crate::oracle::log_starts::LogStarts;
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
    let host = &survey.host;
    let running = survey.instances.iter().map(|instance| of_instance(survey, sizings, instance));
    let stopped = host.stopped.iter().map(|stopped| of_stopped(survey, sizings, stopped));
    let finding = |(priority, one): (u64, HostRecommendation)| {
        let instance = survey.instances.iter().find(|instance| one.instance.as_deref() == Some(&instance.id.name));
        finding_record(priority, &one, instance, fields(&one.recommendation))
    };
    OracleSnapshot {
        taken_at: host.taken_at,
        host_name: host.host_name.clone().unwrap_or_default(),
        records: [
            host.pools.iter().map(|row| pool_record(fields(&PoolColumns::new(row)))).collect(),
            running.chain(stopped).collect(),
            (1..).zip(host_advice::recommendations(survey, sizings)).map(finding).collect(),
            survey.instances.iter().flat_map(|instance| segment_records(root, instance)).collect(),
            logs.records(root, survey),
            vec![host_record(root, survey, sizings, interval, [])],
        ],
    }
}

fn of_instance(survey: &Survey, sizings: &[Sizing], instance: &Instance) -> FileRecord {
    let row = InstanceRow::new(instance, sizings);
    let Status { facts, findings, .. } = &instance.status;
    let start = instance.id.oracle().and_then(|oracle| oracle.last_start.as_ref());
    let is_regressed = findings.iter().any(|(_, finding)| matches!(finding, Finding::Regressed(_)));
    let loss = facts.past.loss.as_ref().filter(|_| is_regressed);
    let own = row! {
        sid: instance.id.name,
        sga_in_huge_pages: row.status.landed_in.is_hugetlb(),
        use_large_pages: row.status.huge_pages.or(row.status.use_large_pages),
        home: row.data_directory.as_ref().or(row.oracle_home.as_ref()),
        started_utc: instance.id.started.and_then(seconds),
        processes: Some(row.processes).filter(|count| *count > 0),
        memory_target: match facts.requested.product {
            Product::Oracle { memory_target, .. } => Some(memory_target),
            Product::PostgreSql => None,
        },
        regression: loss.is_some(),
        regression_utc: loss.and_then(|loss| seconds(loss.at)),
        regression_detail: loss.map(|loss| loss.lost.to_string()),
        state: "running",
        instance_host: instance.id.place.host_name,
    };
    let of_start = of_start(survey, start, facts.pool_state.huge_page_size);
    instance_record(fields(&row).chain(beside(&instance.status)).chain(of_start).chain(own))
}

/// An instance that does not run: what its next start would get of the pool as it is.
fn of_stopped(survey: &Survey, sizings: &[Sizing], stopped: &StoppedOracle) -> FileRecord {
    let row = StoppedRow::new(stopped, survey, sizings);
    let size = survey.host.default_page_size();
    let pool = size.and_then(|size| survey.host.pool(size));
    let own = row! {
        sid: stopped.name,
        landed_in: Landing::Unknown,
        page_tables_host: survey.host.meminfo.as_ref().and_then(|meminfo| meminfo.page_tables),
        home: stopped.home,
    };
    let of_start = of_start(survey, stopped.last_start.as_ref(), size);
    instance_record(fields(&row).chain(counters(pool)).chain(of_start).chain(own))
}

/// What an instance has whether it runs or not: what its last start logged of the pages of `size`.
fn of_start(survey: &Survey, start: Option<&LastStart>, size: Option<PageSize>) -> [NamedValue; 5] {
    let logged = start.zip(size).and_then(|(start, size)| start.pages_of(size));
    row! {
        transparent_hugepage: survey.host.transparent_hugepage,
        last_start_available: logged.and_then(|pages| pages.available),
        last_start_expected: logged.and_then(|pages| pages.expected),
        last_start_allocated: logged.and_then(|pages| pages.allocated),
        last_start_errors: start.map(logged_errors),
    }
}

fn segment_records(root: &Root, instance: &Instance) -> Vec<FileRecord> {
    /// The kernel's default for the number of segments (SHMMNI).
    const MAX_SEGMENTS: usize = 4096;
    let Some(memory) = instance.memory.shared.as_ref().filter(|_| instance.id.oracle().is_some()) else {
        return Vec::new();
    };
    let base = root.base_page_size().ok();
    let of_mapping = |mapping: &Mapping| {
        let landed_in = match mapping.page_size {
            size @ Some(_) if size > base => Landing::Hugetlb,
            Some(_) => Landing::Base,
            None => Landing::Unknown,
        };
        row! {
            kind: instance.id.kind(),
            sid: instance.id.name,
            pid: instance.id.pid,
            page_size: mapping.page_size,
            landed_in: landed_in,
            instance_host: instance.id.place.host_name,
        }
    };
    if instance.is_amm()
        && let Some(first) = memory.mappings.first()
    {
        let size = memory.mappings.iter().fold(Bytes(0), |sum, mapping| sum.saturating_add(mapping.size()));
        return vec![segment_record(&format!("ora_{}_*", instance.id.name), size, None, None, of_mapping(first))];
    }
    // In another namespace the same number is another segment.
    let is_ours = namespace::is_own(root, instance.id.pid, "ipc");
    let known = if is_ours { sysvipc::read(root).ok().flatten().unwrap_or_default() } else { Vec::new() };
    let record = |mapping: &Mapping| {
        let shmid = mapping.is_sysv().then_some(mapping.inode);
        let segment = known.iter().find(|segment| Some(segment.shmid) == shmid);
        segment_record(mapping.name(), mapping.size(), shmid, segment, of_mapping(mapping))
    };
    memory.mappings.iter().take(MAX_SEGMENTS).map(record).collect()
}
