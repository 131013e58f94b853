//! The starts in the alert logs as records. A log may have hundreds of megabytes, so it is read again only after another start.

use std::collections::BTreeMap;

use hugepage_host::readers::{self, Owner};
use hugepage_host::{Instance, Survey};
use hugepage_kernel::proc::rlimit::Rlimit;
use hugepage_kernel::{InstanceFiles, Notes, Root};
use hugepage_oracle::log_history::RememberedStart;
use hugepage_oracle::readers::LastStart;
use hugepage_oracle::running::RunningOracle;
use hugepage_oracle::stopped::StoppedOracle;

use crate::oracle::instance_columns::StartRecord;
use crate::oracle::record_line::seconds;

/// The last starts of an instance that become records: the package in the database reads all of them at each SELECT.
const MAX_RECORDS: usize = 50;

/// The starts of the instances of a host, as they were read.
#[derive(Debug, Default)]
pub struct LogStarts(BTreeMap<LogKey, Vec<RememberedStart>>);

/// An instance and its last start: what a log must be read again for. The process ID is 0 of one that does not run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LogKey {
    log: String,
    sid: String,
    pid: i32,
    last_start: Option<String>,
}

impl LogStarts {
    /// The records of all Oracle instances that count, each instance's oldest start first.
    pub fn records(&mut self, root: &Root, survey: &Survey) -> Vec<StartRecord> {
        let mut before = std::mem::take(&mut self.0);
        let mut records = Vec::new();
        let mut add =
            |key: Option<LogKey>, record: StartRecord, reader: &Owner, read: &dyn Fn() -> Vec<RememberedStart>| {
                let Some(key) = key else { return };
                // What cannot be read of a log is a note of the survey already.
                let Some(starts) = before.remove(&key).or_else(|| readers::read_as(reader, read).ok()) else { return };
                let current = key.last_start.as_deref().filter(|_| key.pid != 0);
                records.extend(of_instance(&record, &starts, current));
                self.0.insert(key, starts);
            };
        for (instance, oracle) in survey.instances.iter().filter_map(|instance| Some((instance, instance.id.oracle()?)))
        {
            let record = StartRecord {
                kind: Some(oracle.kind.to_string()),
                sid: Some(instance.id.name.clone()),
                home: oracle.home.clone(),
                instance_host: instance.id.place.host_name.clone(),
                ..StartRecord::default()
            };
            add(key_of(instance, oracle), record, &instance.id.reader, &|| {
                oracle.starts(&InstanceFiles::of_process(root, instance.id.pid), &mut Notes::default())
            });
        }
        for stopped in &survey.host.stopped {
            let record = StartRecord {
                kind: Some(stopped.kind.to_string()),
                sid: Some(stopped.name.clone()),
                home: Some(stopped.home.clone()),
                ..StartRecord::default()
            };
            add(key_of_stopped(stopped), record, &survey.host.reader_of(stopped.owner), &|| {
                stopped.starts(root, &mut Notes::default())
            });
        }
        records
    }
}

fn key(log: Option<&String>, sid: &str, pid: i32, start: Option<&LastStart>) -> Option<LogKey> {
    let last_start = start.and_then(|start| start.at.as_ref()).map(|at| at.local.to_string());
    Some(LogKey { log: log?.clone(), sid: sid.to_owned(), pid, last_start })
}

fn key_of(instance: &Instance, oracle: &RunningOracle) -> Option<LogKey> {
    key(oracle.alert_log.as_ref(), &instance.id.name, instance.id.pid, oracle.last_start.as_ref())
}

fn key_of_stopped(stopped: &StoppedOracle) -> Option<LogKey> {
    key(stopped.alert_log.as_ref(), &stopped.name, 0, stopped.last_start.as_ref())
}

/// The records of an instance's starts in its log. `current`: the time of the start of what runs, if the log shows it.
fn of_instance(instance: &StartRecord, starts: &[RememberedStart], current: Option<&str>) -> Vec<StartRecord> {
    let time_of = |start: &RememberedStart| start.start.at.as_ref().map(|at| at.text.clone());
    let record = |remembered: &RememberedStart| {
        let RememberedStart { start, got, .. } = remembered;
        let parameters = &start.parameters;
        let mut huge = start.expected().into_iter().map(|(size, _)| size);
        let size = got.size.filter(|size| start.pages_of(*size).is_some()).or_else(|| huge.next());
        let pages = size.and_then(|size| start.pages_of(size)).unwrap_or_default();
        let local = start.at.as_ref().map(|at| at.local.to_string());
        StartRecord {
            started_utc: remembered.at().and_then(seconds),
            started_in_log: time_of(remembered),
            is_current: Some(local.is_some() && local.as_deref() == current),
            landed_in: Some(got.landing.to_string()),
            page_size: got.size.map(|size| size.bytes()),
            huge_page_bytes: remembered.in_huge_pages,
            landed_since: starts.get(remembered.since).and_then(time_of),
            regression: Some(remembered.lost.is_some()),
            regression_detail: remembered.lost.map(|lost| lost.to_string()),
            failed: Some(remembered.failed),
            version: start.version.clone(),
            use_large_pages: start.use_large_pages.clone(),
            sga_max_size: parameters.sga_max_size(),
            memory_target: parameters.size("memory_target"),
            pga_aggregate_target: parameters.size("pga_aggregate_target"),
            pga_aggregate_limit: parameters.size("pga_aggregate_limit"),
            available_pages: pages.available,
            expected_pages: pages.expected,
            allocated_pages: pages.allocated,
            memlock: start.memlock.and_then(Rlimit::bytes),
            errors: logged_errors(start),
            ..instance.clone()
        }
    };
    starts[starts.len().saturating_sub(MAX_RECORDS)..].iter().map(record).collect()
}

/// The errors of a start and of its table; `None` if there are none.
pub fn logged_errors(start: &LastStart) -> Option<String> {
    let of_table = start.page_sizes.iter().filter_map(|row| row.error.as_ref());
    let all: Vec<_> = of_table.chain(&start.errors).map(String::as_str).collect();
    (!all.is_empty()).then(|| all.join("; "))
}
