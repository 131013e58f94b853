//! The past of each instance: a history file for each in one directory, in the extension's format (docs/history.md).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hugepage_core::advise::events::{self, Volume};
use hugepage_core::advise::log::Message;
use hugepage_core::assess::Threat;
use hugepage_core::collect::instances::{Instance, Survey};
use hugepage_core::history::record::Origin;
use hugepage_core::history::{Event, HistoryError, HistoryFile, Record};
use hugepage_core::read::{InstanceFiles, Root, identity};
use humantime::format_rfc3339_micros;

use crate::state;

/// So many records of an instance wait at most for a disk that has room.
const MOST_UNWRITTEN: usize = 100;

/// The past of all instances of a host.
#[derive(Debug)]
pub struct Past {
    directory: PathBuf,
    machine: String,
    /// By file, the records that could not be written yet, or are not to be: what was said once is not said again.
    unwritten: BTreeMap<PathBuf, Vec<Record>>,
    /// By file, the postmaster or PMON of the last look.
    processes: BTreeMap<PathBuf, i32>,
}

/// What one look at an instance has to say.
#[derive(Debug)]
pub struct Said {
    /// Whose it is.
    pub instance: String,
    /// Its messages.
    pub messages: Vec<(Volume, Message)>,
    /// What kept it from being recorded.
    pub trouble: Option<HistoryError>,
}

impl Past {
    /// That of the host below `root`, in its `directory`.
    pub fn of(root: &Root, directory: &Path) -> Self {
        let directory = directory.to_string_lossy();
        // Of a tree no link leads elsewhere.
        let in_tree = || InstanceFiles::own(root).canonical(&directory);
        let real = if root.is_tree() { in_tree() } else { None };
        Self {
            directory: root.path(&real.unwrap_or_else(|| directory.into_owned())),
            machine: identity::machine(root).unwrap_or_default(),
            unwritten: BTreeMap::new(),
            processes: BTreeMap::new(),
        }
    }

    /// Tells each instance what its last start has lost, if that was seen. A past that can't be read is none.
    pub fn tell(&self, survey: &mut Survey) {
        let boot_id = survey.boot_id.clone();
        for instance in &mut survey.instances {
            self.remind(instance, boot_id.as_deref());
        }
    }

    /// Holds each instance against its past, and records what is new; keeps `size` records of each, none if 0.
    pub fn add(&mut self, survey: &mut Survey, size: usize) -> Vec<Said> {
        let Survey { instances, host_name, boot_id, taken_at, .. } = survey;
        let now = format_rfc3339_micros(*taken_at).to_string();
        let host = host_name.clone().unwrap_or_default();
        // Of those that do not count nothing is said and nothing is kept: any user could fill the disk.
        let counted = instances.iter_mut().filter(|instance| instance.counts());
        counted.map(|instance| self.add_one(instance, &now, &host, boot_id.as_deref(), size)).collect()
    }

    fn add_one(&mut self, instance: &mut Instance, now: &str, host: &str, boot_id: Option<&str>, size: usize) -> Said {
        let mut said = Said { instance: instance.name.clone(), messages: Vec::new(), trouble: None };
        let before = match self.last(instance) {
            // Without a history only what this program itself has seen counts.
            Ok(before) => before.filter(|_| size > 0 || self.unwritten.contains_key(&self.path(instance))),
            Err(error) => {
                said.trouble = Some(error);
                None
            }
        };
        // Of a process that was not seen yet only the time of its start tells, which is not exact.
        let process = self.processes.insert(self.path(instance), instance.pid);
        let is_same_process =
            |before: &&Record| process.map_or_else(|| is_of_same_process(before, instance), |pid| pid == instance.pid);
        let allocations = before.as_ref().filter(is_same_process);
        let event = match (&before, allocations) {
            (Some(before), _) if is_of_same_start(before, instance, boot_id) => Event::Change,
            (_, Some(_)) => Event::CrashRestart,
            _ => Event::Start,
        };
        let generation = allocations.map_or(0, |before| before.generation) + i64::from(event.is_start());
        let origin = Origin {
            // What was recorded first stays, for the clock may be corrected.
            postmaster_start: allocations.map_or_else(|| started(instance), |before| before.postmaster_start.clone()),
            generation,
            server_version: instance.version.clone().unwrap_or_default(),
            host: host.to_owned(),
            boot_id: boot_id.map(str::to_owned),
            instance: state::whose(instance, self.machine.clone()),
            segment: segment(instance),
        };
        let status = &instance.status;
        let record = Record::new(event, now.to_owned(), origin, status);
        let news = if event.is_start() {
            events::start(status, record, before.as_ref())
        } else {
            let warned = before.as_ref().map(threats).unwrap_or_default();
            events::news(status, record, before.as_ref(), &warned, Vec::new())
        };
        said.messages = news.messages;
        said.trouble = said.trouble.or(self.write(instance, news.record, size).err());
        self.remind(instance, boot_id);
        said
    }

    /// Appends the record, after those that could not be written before.
    fn write(&mut self, instance: &Instance, record: Option<Record>, size: usize) -> Result<(), HistoryError> {
        let file = self.file(instance);
        let waiting = self.unwritten.entry(self.path(instance)).or_default();
        waiting.extend(record);
        let surplus = waiting.len().saturating_sub(MOST_UNWRITTEN);
        waiting.drain(..surplus);
        if size == 0 || waiting.is_empty() {
            return Ok(());
        }
        while let Some(record) = waiting.first() {
            file.append(record)?;
            waiting.remove(0);
        }
        file.trim(size)?;
        file.sync()
    }

    /// A regression, and why a start went as it did, are part of the assessment as long as that start lasts.
    fn remind(&self, instance: &mut Instance, boot_id: Option<&str>) {
        let whose = state::whose(instance, self.machine.clone());
        let is_its_start = |record: &Record| {
            record.event.is_start() && record.instance.is_past_of(&whose) && is_of_same_start(record, instance, boot_id)
        };
        if let Some(start) = self.last_of(instance, is_its_start).ok().flatten() {
            instance.remember(start.cause(), start.loss());
        }
    }

    fn last(&self, instance: &Instance) -> Result<Option<Record>, HistoryError> {
        let whose = state::whose(instance, self.machine.clone());
        self.last_of(instance, |record| record.instance.is_past_of(&whose))
    }

    fn last_of(&self, instance: &Instance, wanted: impl Fn(&Record) -> bool) -> Result<Option<Record>, HistoryError> {
        let unwritten =
            self.unwritten.get(&self.path(instance)).and_then(|waiting| waiting.iter().rfind(|one| wanted(one)));
        unwritten.map_or_else(|| self.file(instance).last(&wanted), |record| Ok(Some(record.clone())))
    }

    fn path(&self, instance: &Instance) -> PathBuf {
        state::history(&self.directory, &instance.kind.to_string(), &instance.name)
    }

    /// The file of one instance.
    fn file(&self, instance: &Instance) -> HistoryFile {
        HistoryFile::at(self.path(instance))
    }
}

/// When the instance started, as its records have it.
fn started(instance: &Instance) -> String {
    instance.started.map(|at| format_rfc3339_micros(at).to_string()).unwrap_or_default()
}

/// The inode of its largest mapping: another one after every allocation of shared memory.
fn segment(instance: &Instance) -> Option<u64> {
    let mappings = &instance.memory.as_ref()?.mappings;
    mappings.iter().max_by_key(|mapping| mapping.size()).map(|mapping| mapping.inode)
}

/// Whether a record is of the postmaster, or PMON, that runs now. The kernel counts the age of a process in hundredths of
/// a second.
fn is_of_same_process(record: &Record, instance: &Instance) -> bool {
    const CLOSE: Duration = Duration::from_secs(2);
    let recorded = humantime::parse_rfc3339(&record.postmaster_start).ok();
    recorded.zip(instance.started).is_some_and(|(recorded, now)| {
        let apart = now.duration_since(recorded).unwrap_or_else(|earlier| earlier.duration());
        apart < CLOSE
    })
}

/// Whether a record is of the shared memory that there is now.
fn is_of_same_start(record: &Record, instance: &Instance, boot_id: Option<&str>) -> bool {
    match (record.segment, segment(instance)) {
        (Some(recorded), Some(now)) => recorded == now && record.boot_id.as_deref() == boot_id,
        _ => is_of_same_process(record, instance),
    }
}

fn threats(record: &Record) -> Vec<Threat> {
    Threat::ALL.into_iter().filter(|threat| record.threats.contains(&threat.to_string())).collect()
}
