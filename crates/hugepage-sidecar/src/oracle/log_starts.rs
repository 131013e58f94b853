//! The starts in the alert logs, which may have hundreds of megabytes: one is read again only after another start.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use hugepage_assess::columns::NamedValue;
use hugepage_assess::row;
use hugepage_host::readers::{self, Owner, Unread};
use hugepage_host::{ServerIdentity, Survey};
use hugepage_kernel::proc::rlimit::Rlimit;
use hugepage_kernel::{InstanceFiles, Notes, Root};
use hugepage_oracle::log_history::{RememberedStart, starts_in};
use hugepage_oracle::readers::LastStart;
use hugepage_oracle::running::RunningOracle;
use serde::{Deserialize, Serialize};

use crate::oracle::FileRecord;
use crate::oracle::record_line::seconds;

/// The last starts of an instance that become records: the package in the database reads all of them at each SELECT.
const MAX_RECORDS: usize = 50;

/// The starts of the instances of a host, as they were read.
#[derive(Debug, Default)]
pub struct LogStarts {
    of_survey: BTreeMap<LogKey, StartsInLog>,
    before: BTreeMap<LogKey, StartsInLog>,
}

/// What the logs of an instance have.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct StartsInLog {
    /// The starts, the oldest first.
    pub starts: Vec<RememberedStart>,
    /// What could not be read.
    pub notes: Vec<String>,
}

/// An instance and its last start: what a log must be read again for. The process ID is 0 of one that does not run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LogKey {
    log: Option<String>,
    sid: String,
    pid: i32,
    last_start: Option<i64>,
}

impl LogStarts {
    /// Begins another survey. At the next one what was not asked for in this one is forgotten.
    pub fn begin_survey(&mut self) {
        self.before = std::mem::take(&mut self.of_survey);
    }

    /// The starts of an instance that runs.
    pub fn of_running(
        &mut self,
        root: &Root,
        instance: &ServerIdentity,
        oracle: &RunningOracle,
    ) -> Result<&StartsInLog, Unread> {
        let last_start = local_time(oracle.last_start.as_ref());
        let key = LogKey { log: oracle.alert_log.clone(), sid: instance.name.clone(), pid: instance.pid, last_start };
        self.read(key, &instance.reader, || InstanceFiles::of_process(root, instance.pid))
    }

    fn read(&mut self, key: LogKey, reader: &Owner, files: impl Fn() -> InstanceFiles) -> Result<&StartsInLog, Unread> {
        let place = match self.of_survey.entry(key) {
            Entry::Occupied(known) => return Ok(known.into_mut()),
            Entry::Vacant(place) => place,
        };
        let read = || {
            let mut notes = Notes::default();
            let log = place.key().log.as_ref();
            let starts = log.map(|log| starts_in(&files(), log, &mut notes)).unwrap_or_default();
            StartsInLog { starts, notes: notes.into_vec() }
        };
        let found = self.before.remove(place.key()).map_or_else(|| readers::read_as(reader, read), Ok)?;
        Ok(place.insert(found))
    }

    /// The records of all Oracle instances that count, each one's oldest start first. What can't be read is a note of the survey.
    pub fn records(&mut self, root: &Root, survey: &Survey) -> Vec<FileRecord> {
        let mut records = Vec::new();
        for (instance, oracle) in survey.instances.iter().filter_map(|one| Some((&one.id, one.id.oracle()?))) {
            let Ok(found) = self.of_running(root, instance, oracle) else { continue };
            let host = &instance.place.host_name;
            let of = row! { kind: oracle.kind.to_string(), sid: instance.name, home: oracle.home, instance_host: host };
            records.extend(of_instance(&of, &found.starts, local_time(oracle.last_start.as_ref())));
        }
        for stopped in &survey.host.stopped {
            let last_start = local_time(stopped.last_start.as_ref());
            let key = LogKey { log: stopped.alert_log.clone(), sid: stopped.name.clone(), pid: 0, last_start };
            let reader = survey.host.reader_of(stopped.owner);
            let Ok(found) = self.read(key, &reader, || InstanceFiles::own(root)) else { continue };
            let of = row! { kind: stopped.kind.to_string(), sid: stopped.name, home: stopped.home };
            records.extend(of_instance(&of, &found.starts, None));
        }
        records
    }
}

fn local_time(start: Option<&LastStart>) -> Option<i64> {
    Some(start?.at.as_ref()?.local)
}

/// The records of an instance's starts in its log. `current`: the time of the start of what runs, if the log shows it.
fn of_instance(instance: &[NamedValue], starts: &[RememberedStart], current: Option<i64>) -> Vec<FileRecord> {
    let record = |one: &RememberedStart| {
        let is_current = current.is_some() && local_time(Some(&one.start)) == current;
        let of_start = of_start(one, starts.get(one.since), is_current);
        instance.iter().cloned().chain(of_start).collect()
    };
    starts[starts.len().saturating_sub(MAX_RECORDS)..].iter().map(record).collect()
}

/// What a log shows of a start. `first`: the first of those without interruption that landed in the same pages.
fn of_start(one: &RememberedStart, first: Option<&RememberedStart>, is_current: bool) -> [NamedValue; 21] {
    let start = &one.start;
    let parameters = &start.parameters;
    let size = one.got.size.filter(|size| start.pages_of(*size).is_some());
    let size = size.or_else(|| start.expected().first().map(|(size, _)| *size));
    let pages = size.and_then(|size| start.pages_of(size));
    let time_in_log = |one: &RememberedStart| one.start.at.as_ref().map(|at| at.text.clone());
    row! {
        started_utc: one.at().and_then(seconds),
        started_in_log: time_in_log(one),
        is_current: is_current,
        landed_in: one.got.landing,
        page_size: one.got.size,
        huge_page_bytes: one.in_huge_pages,
        landed_since: first.and_then(time_in_log),
        regression: one.lost.is_some(),
        regression_detail: one.lost.map(|lost| lost.to_string()),
        failed: one.failed,
        version: start.version,
        use_large_pages: start.use_large_pages,
        sga_max_size: parameters.sga_max_size(),
        memory_target: parameters.size("memory_target"),
        pga_aggregate_target: parameters.size("pga_aggregate_target"),
        pga_aggregate_limit: parameters.size("pga_aggregate_limit"),
        available_pages: pages.and_then(|pages| pages.available),
        expected_pages: pages.and_then(|pages| pages.expected),
        allocated_pages: pages.and_then(|pages| pages.allocated),
        memlock: start.memlock.and_then(Rlimit::bytes),
        errors: logged_errors(start),
    }
}

/// The errors of a start and of its table.
pub fn logged_errors(start: &LastStart) -> Vec<&String> {
    start.page_sizes.iter().filter_map(|row| row.error.as_ref()).chain(&start.errors).collect()
}
