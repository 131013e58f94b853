//! Converts a survey of the host to the columns that Oracle reads.

use std::collections::BTreeMap;
use std::time::Duration;

use hugepage_assess::assessment::{Finding, Status};
use hugepage_assess::columns::{NamedValue, fields};
use hugepage_assess::model::Product;
use hugepage_assess::pools::PoolColumns;
use hugepage_assess::row;
use hugepage_assess::status_row::HostOfServer;
use hugepage_facts::{Landing, LastStart};
use hugepage_host::host_advice::{self, HostRecommendation};
use hugepage_host::{HostVerdict, Instance, Survey};
use hugepage_kernel::PageSize;
use hugepage_oracle::stopped::StoppedOracle;
use hugepage_sizing::Sizing;

use crate::oracle::record_line::seconds;
use crate::oracle::{FileRecord, OracleSnapshot};
use crate::output::rows::{InstanceRow, StoppedRow};

/// The snapshot of a survey. `interval`: the time until the next one; `None` if none follows.
pub fn from_survey(
    survey: &Survey,
    sizings: &[Sizing],
    interval: Option<Duration>,
) -> OracleSnapshot {
    let host = &survey.host;
    let running = survey
        .instances
        .iter()
        .map(|instance| of_instance(survey, sizings, instance));
    let stopped = survey
        .stopped
        .iter()
        .map(|stopped| of_stopped(survey, sizings, stopped));
    let findings = (1..).zip(host_advice::recommendations(survey, sizings));
    let records = [
        (
            "pools",
            host.pools
                .iter()
                .map(|row| fields(&PoolColumns::new(row)).collect())
                .collect(),
        ),
        ("instances", running.chain(stopped).collect()),
        (
            "findings",
            findings
                .map(|(priority, one)| of_finding(survey, priority, &one))
                .collect(),
        ),
        ("hosts", vec![of_host(survey, sizings, interval)]),
    ];
    OracleSnapshot {
        taken_at: host.taken_at,
        host_name: host.host_name.clone().unwrap_or_default(),
        records: BTreeMap::from(records.map(|(function, records)| (function.to_owned(), records))),
    }
}

fn of_host(survey: &Survey, sizings: &[Sizing], interval: Option<Duration>) -> FileRecord {
    let host = &survey.host;
    let meminfo = host.meminfo.as_ref();
    let default = host.default_page_size();
    let has_instances = !(survey.instances.is_empty() && survey.stopped.is_empty());
    let record = row! {
        interval_seconds: interval.map(|interval| interval.as_secs().max(1)),
        sidecar_version: env!("CARGO_PKG_VERSION"),
        verdict: has_instances.then(|| HostVerdict::of_survey(survey, sizings).severity),
        memory_total: meminfo.and_then(|meminfo| meminfo.mem_total),
        memory_available: meminfo.and_then(|meminfo| meminfo.mem_available),
        page_tables_host: meminfo.and_then(|meminfo| meminfo.page_tables),
        huge_page_size: default,
        hugetlb: meminfo.and_then(|meminfo| meminfo.hugetlb),
        recommended_nr_hugepages: default.and_then(|size| Sizing::of_size(sizings, size)?.recommended),
        transparent_hugepage: host.transparent_hugepage,
        hugetlb_shm_group: host.kernel.system_v.hugetlb_shm_group,
        kernel: host.kernel.release,
        notes: survey.notes,
    };
    record.into()
}

fn of_finding(survey: &Survey, priority: u64, one: &HostRecommendation) -> FileRecord {
    let instance = survey
        .instances
        .iter()
        .find(|instance| one.key == Some(instance.id.key()));
    let own = row! {
        priority: priority,
        kind: instance.map(|instance| instance.id.kind()),
        sid: one.instance,
        current_value: one.recommendation.current,
        instance_host: instance.and_then(|instance| instance.id.place.host_name.as_ref()),
    };
    fields(&one.recommendation).chain(own).collect()
}

fn of_instance(survey: &Survey, sizings: &[Sizing], instance: &Instance) -> FileRecord {
    let row = InstanceRow::new(instance, sizings);
    let Status {
        facts, findings, ..
    } = &instance.status;
    let start = instance
        .id
        .oracle()
        .and_then(|oracle| oracle.settings.start.as_ref());
    let is_regressed = findings
        .iter()
        .any(|(_, finding)| matches!(finding, Finding::Regressed(_)));
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
    fields(&row)
        .chain(fields(&HostOfServer::of_status(&instance.status)))
        .chain(of_start)
        .chain(own)
        .collect()
}

/// An instance that does not run: what its next start would get of the pool as it is.
fn of_stopped(survey: &Survey, sizings: &[Sizing], stopped: &StoppedOracle) -> FileRecord {
    let row = StoppedRow::new(stopped, survey, sizings);
    let size = survey.host.default_page_size();
    let pool = size.and_then(|size| survey.host.pool(size));
    let own = row! {
        sid: stopped.name,
        landed_in: Landing::Unknown,
        home: stopped.home,
    };
    let of_host = HostOfServer::new(None, survey.host.meminfo.as_ref(), pool);
    let of_start = of_start(survey, stopped.last_start.as_ref(), size);
    fields(&row)
        .chain(fields(&of_host))
        .chain(of_start)
        .chain(own)
        .collect()
}

/// What an instance has whether it runs or not: what its last start logged of the pages of `size`.
fn of_start(survey: &Survey, start: Option<&LastStart>, size: Option<PageSize>) -> [NamedValue; 5] {
    let logged = start
        .zip(size)
        .and_then(|(start, size)| start.pages_of(size));
    row! {
        transparent_hugepage: survey.host.transparent_hugepage,
        last_start_available: logged.and_then(|pages| pages.available),
        last_start_expected: logged.and_then(|pages| pages.expected),
        last_start_allocated: logged.and_then(|pages| pages.allocated),
        last_start_errors: start.map(|start| start.all_errors().collect::<Vec<_>>()),
    }
}
