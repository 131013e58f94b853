//! The history of each instance: one file per instance in one directory, in the extension's format (docs/history.md).

mod recall;
mod start_record;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use hugepage_assess::advice::events::{self as worker_events, LogLevel};
use hugepage_assess::advice::log::LogMessage;
use hugepage_assess::assessment::Threat;
use hugepage_assess::history::record::Origin;
use hugepage_assess::history::{Event, Record};
use hugepage_assess::model::Loss;
use hugepage_host::{Instance, ServerIdentity, Survey};
use hugepage_kernel::Root;
use hugepage_kernel::host::identity;
use hugepage_server::history::{HistoryError, HistoryFile};
use humantime::format_rfc3339_micros;

use self::start_record::StartRecord;
use crate::{atomic_file, privileges, state};

/// Records of an instance that are kept in memory while they cannot be written.
const MAX_UNWRITTEN_RECORDS: usize = 100;
/// Instances that do not run any more whose unwritten records are kept.
const MAX_GONE_INSTANCES: usize = 100;

/// The histories of all instances of a host.
#[derive(Debug)]
pub struct HostHistory {
    root: Root,
    directory: PathBuf,
    machine: String,
    boot_id: Option<String>,
    /// Records that are not written, by file: the disk is full or the history is off. They prevent repetition.
    unwritten: BTreeMap<PathBuf, Vec<Record>>,
    /// The process ID of the postmaster or PMON at the last survey, by file.
    processes: BTreeMap<PathBuf, i32>,
    /// The process ID of PMON, and what its alert logs show that its start lost, by file.
    losses_in_logs: RefCell<BTreeMap<PathBuf, (i32, Option<Loss>)>>,
    /// The record of the current start, by file, so that a history, which may be long, is not read at every survey.
    starts: RefCell<BTreeMap<PathBuf, StartRecord>>,
}

/// The messages of one survey about an instance.
#[derive(Debug)]
pub struct InstanceEvents {
    /// The instance.
    pub instance: String,
    /// The messages.
    pub messages: Vec<(LogLevel, LogMessage)>,
    /// Why the record could not be written.
    pub error: Option<HistoryError>,
}

impl HostHistory {
    /// The histories of the host below `root`, in its `directory`.
    pub fn open(root: &Root, directory: &Path) -> Self {
        let directory = directory.to_string_lossy();
        // In a tree, no link leads elsewhere.
        let real = if root.is_tree() { root.path_without_links(&directory) } else { None };
        Self {
            root: root.clone(),
            directory: real.unwrap_or_else(|| root.path(&directory)),
            machine: identity::host_name(root).unwrap_or_default(),
            boot_id: identity::boot_id(root).ok().flatten(),
            unwritten: BTreeMap::new(),
            processes: BTreeMap::new(),
            losses_in_logs: RefCell::default(),
            starts: RefCell::default(),
        }
    }

    /// Compares each instance with its history and records changes. Keeps `size` records per instance; 0 keeps none.
    pub fn record(&mut self, survey: &Survey, size: usize) -> Vec<InstanceEvents> {
        let taken: BTreeSet<_> = survey.instances.iter().map(|instance| self.path(&instance.id)).collect();
        self.forget_all_but(&taken);
        let counted = survey.instances.iter().map(|instance| {
            let adopted = if size > 0 { self.adopt(&instance.id, &taken) } else { Ok(()) };
            let mut events = self.record_instance(instance, survey, size);
            events.error = events.error.or(adopted.err());
            events
        });
        counted.collect()
    }

    /// Forgets what is of use only for instances that run: containers come and go for years.
    fn forget_all_but(&mut self, running: &BTreeSet<PathBuf>) {
        self.processes.retain(|path, _| running.contains(path));
        self.losses_in_logs.get_mut().retain(|path, _| running.contains(path));
        self.starts.get_mut().retain(|path, _| running.contains(path));
        let mut gone = 0;
        self.unwritten.retain(|path, pending| {
            gone += usize::from(!running.contains(path) && !pending.is_empty());
            !pending.is_empty() && (running.contains(path) || gone <= MAX_GONE_INSTANCES)
        });
    }

    /// Gives an instance without a history that of an older version, or of the home from which it was moved. `taken`: the files of
    /// the instances that run. The other file remains: another home may have it, too.
    #[expect(clippy::disallowed_methods, reason = "this program's directory of histories")]
    fn adopt(&self, instance: &ServerIdentity, taken: &BTreeSet<PathBuf>) -> Result<(), HistoryError> {
        let new = self.path(instance);
        if instance.oracle().is_none() || fs::symlink_metadata(&new).is_ok() {
            return Ok(());
        }
        let earlier = state::earlier_history_files(&self.directory, instance, |path| taken.contains(path));
        let Some(earlier) = earlier.first() else { return Ok(()) };
        let lines: String = HistoryFile::at(earlier).read()?.records.iter().map(Record::to_line).collect();
        let mode = fs::metadata(earlier).map_or(0o600, |metadata| metadata.permissions().mode() & 0o640);
        let written = atomic_file::write(&new, lines.as_bytes(), mode);
        written.map_err(|error| HistoryError::Io { operation: "write", path: new, source: io::Error::other(error) })
    }

    fn record_instance(&mut self, instance: &Instance, survey: &Survey, size: usize) -> InstanceEvents {
        let Instance { id: instance, status, .. } = instance;
        let mut events = InstanceEvents { instance: instance.name.clone(), messages: Vec::new(), error: None };
        let before = match self.last(instance) {
            // Without a history, compare only with surveys of this process.
            Ok(before) => before.filter(|_| size > 0 || self.unwritten.contains_key(&self.path(instance))),
            Err(error) => {
                events.error = Some(error);
                None
            }
        };
        // After a start of this program only the start time identifies the process, which is not exact.
        let process = self.processes.insert(self.path(instance), instance.pid);
        let is_same_process =
            |before: &&Record| process.map_or_else(|| is_of_same_process(before, instance), |pid| pid == instance.pid);
        let allocations = before.as_ref().filter(is_same_process);
        let event = match (&before, allocations) {
            (Some(before), _) if self.is_of_same_start(before, instance) => Event::Change,
            (_, Some(_)) => Event::CrashRestart,
            _ => Event::Start,
        };
        let generation = allocations.map_or(0, |before| before.generation) + i64::from(event.is_start());
        let origin = Origin {
            // Keep the first recorded value: the clock may be corrected.
            postmaster_start: allocations.map_or_else(|| started(instance), |before| before.postmaster_start.clone()),
            generation,
            server_version: instance.version.clone().unwrap_or_default(),
            host: survey.host.host_name.clone().unwrap_or_default(),
            boot_id: self.boot_id.clone(),
            instance: state::instance_identity(instance, self.machine.clone()),
            segment: instance.allocation,
        };
        let record = Record::new(event, format_rfc3339_micros(survey.host.taken_at).to_string(), origin, status);
        let report = if event.is_start() {
            worker_events::start(status, record, before.as_ref())
        } else {
            let mut warned = before.as_ref().map(|before| before.threats.clone()).unwrap_or_default();
            // A record does not say whether its threat of the next start spoke of a crash as well.
            if warned.iter().any(|threat| threat.is_of_restart()) && status.warnings().contains(&Threat::CrashLoses) {
                warned.push(Threat::CrashLoses);
            }
            worker_events::update(status, record, before.as_ref(), &warned, Vec::new())
        };
        events.messages = report.messages;
        events.error = events.error.or(self.write(instance, report.record, size).err());
        events
    }

    /// Appends the record after the pending ones.
    fn write(&mut self, instance: &ServerIdentity, record: Option<Record>, size: usize) -> Result<(), HistoryError> {
        let file = HistoryFile::at(self.path(instance));
        let pending = self.unwritten.entry(self.path(instance)).or_default();
        pending.extend(record);
        let surplus = pending.len().saturating_sub(MAX_UNWRITTEN_RECORDS);
        pending.drain(..surplus);
        if size == 0 || pending.is_empty() {
            return Ok(());
        }
        let mut written = Ok(());
        let done = privileges::write(|| {
            written = append_all(&file, pending, size);
            io::Result::Ok(())
        });
        written?;
        done.map_err(|source| HistoryError::Io { operation: "write", path: file.path().to_owned(), source })
    }

    fn last(&self, instance: &ServerIdentity) -> Result<Option<Record>, HistoryError> {
        let identity = state::instance_identity(instance, self.machine.clone());
        self.last_matching(instance, &self.path(instance), |record| record.instance.is_past_of(&identity))
    }

    #[expect(clippy::disallowed_methods, reason = "this program's directory of histories")]
    fn last_matching(
        &self,
        instance: &ServerIdentity,
        path: &Path,
        matches: impl Fn(&Record) -> bool,
    ) -> Result<Option<Record>, HistoryError> {
        let unwritten = self.unwritten.get(path).and_then(|pending| pending.iter().rfind(|one| matches(one)));
        if let Some(record) = unwritten {
            return Ok(Some(record.clone()));
        }
        if path.exists() {
            return HistoryFile::at(path.to_owned()).last(&matches);
        }
        // Until `watch` of this version has run.
        HistoryFile::at(state::history_file_of_all_homes(&self.directory, instance)).last(&matches)
    }

    /// Whether a record is of the current shared memory.
    fn is_of_same_start(&self, record: &Record, instance: &ServerIdentity) -> bool {
        match (record.segment, instance.allocation) {
            (Some(recorded), Some(now)) => recorded == now && record.boot_id == self.boot_id,
            _ => is_of_same_process(record, instance),
        }
    }

    fn path(&self, instance: &ServerIdentity) -> PathBuf {
        state::history_file(&self.directory, instance)
    }
}

/// Appends the records, and leaves those that could not be written.
fn append_all(file: &HistoryFile, pending: &mut Vec<Record>, size: usize) -> Result<(), HistoryError> {
    while let Some(record) = pending.first() {
        file.append(record)?;
        pending.remove(0);
    }
    file.trim(size)?;
    file.sync()
}

/// When the instance started, in the format of the records; empty if unknown.
fn started(instance: &ServerIdentity) -> String {
    instance.started.map(|at| format_rfc3339_micros(at).to_string()).unwrap_or_default()
}

/// Whether a record is of the postmaster or PMON that runs now. The kernel counts process ages in hundredths of a second.
fn is_of_same_process(record: &Record, instance: &ServerIdentity) -> bool {
    const TOLERANCE: Duration = Duration::from_secs(2);
    let recorded = humantime::parse_rfc3339(&record.postmaster_start).ok();
    recorded.zip(instance.started).is_some_and(|(recorded, now)| {
        let apart = now.duration_since(recorded).unwrap_or_else(|earlier| earlier.duration());
        apart < TOLERANCE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forget_instances_that_are_gone() {
        let record: Record = serde_json::from_value(serde_json::json!({
            "v": 1, "recorded_at": "", "event": "start", "generation": 1, "postmaster_start": "", "server_version": "",
            "host": "", "landed_in": "base", "restart_outlook": "base", "threats": [],
            "instance": {"machine": "", "directory": "", "system_identifier": "", "server_version_num": 0},
        }))
        .unwrap();
        let mut history = HostHistory::open(&Root::live(), Path::new("/nonexistent"));
        let paths: Vec<_> = (0..MAX_GONE_INSTANCES + 20).map(|number| PathBuf::from(format!("/{number:04}"))).collect();
        for path in &paths {
            history.processes.insert(path.clone(), 1);
            history.losses_in_logs.get_mut().insert(path.clone(), (1, None));
            history.starts.get_mut().insert(path.clone(), StartRecord { record: record.clone(), is_by_server: false });
            history.unwritten.insert(path.clone(), vec![record.clone()]);
        }
        history.unwritten.insert(PathBuf::from("/written"), Vec::new());
        let running = BTreeSet::from([paths[0].clone(), paths[paths.len() - 1].clone()]);
        history.forget_all_but(&running);
        assert_eq!(history.processes.keys().cloned().collect::<BTreeSet<_>>(), running);
        assert_eq!(history.losses_in_logs.get_mut().len(), 2);
        assert_eq!(history.starts.get_mut().len(), 2);
        assert_eq!(history.unwritten.len(), MAX_GONE_INSTANCES + 2);
        assert!(running.iter().all(|path| history.unwritten.contains_key(path)));
    }
}
