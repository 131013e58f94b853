//! The history of each instance: one file per instance in one directory, in the extension's format (docs/history.md).

pub mod remembered;
pub mod stored;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use hugepage_assess::advice::events::{self as worker_events, EventReport, LogMessage};
use hugepage_assess::assessment::{Status, Threat};
use hugepage_assess::history::{Event, Record};
use hugepage_facts::ServerIdentity;
use hugepage_host::{Instance, Survey};
use hugepage_kernel::host::identity;
use hugepage_kernel::{BootLook, Root};
use hugepage_server::history::{HistoryFile, boots};
use humantime::format_rfc3339_micros;

use crate::{privileges, state};

/// Records of an instance that are kept in memory while they cannot be written.
const MAX_UNWRITTEN_RECORDS: usize = 100;

/// The histories of all instances of a host.
#[derive(Debug)]
pub struct HostHistory {
    root: Root,
    /// The directory as the host names it, and where that is.
    named: PathBuf,
    directory: PathBuf,
    machine: String,
    boot_id: Option<String>,
    /// What this process knows of each instance, by file.
    known: BTreeMap<PathBuf, KnownInstance>,
}

/// What the last survey has left of an instance.
#[derive(Debug, Default)]
struct KnownInstance {
    /// Its postmaster or PMON; `None` before its first survey.
    pid: Option<i32>,
    last: Option<Record>,
    /// Records that are not written: the disk is full or the history is off.
    unwritten: Vec<Record>,
}

/// The messages of one survey about an instance.
#[derive(Debug)]
pub struct InstanceEvents {
    /// The instance.
    pub instance: String,
    /// The messages.
    pub messages: Vec<LogMessage>,
    /// Why the history could not be read or written.
    pub error: Option<String>,
}

impl HostHistory {
    /// The histories of the host below `root`, in its `directory`.
    pub fn open(root: &Root, directory: &Path) -> Self {
        let named = if root.is_tree() {
            directory.to_owned()
        } else {
            std::path::absolute(directory).unwrap_or_default()
        };
        let path = named.to_string_lossy();
        // In a tree, no link leads elsewhere.
        let real = if root.is_tree() {
            root.path_without_links(&path)
        } else {
            None
        };
        Self {
            root: root.clone(),
            directory: real.unwrap_or_else(|| root.path(&path)),
            machine: identity::host_name(root).unwrap_or_default(),
            boot_id: identity::boot_id(root).ok().flatten(),
            known: BTreeMap::new(),
            named,
        }
    }

    /// The first looks after the boots of the host, and why some may be missing.
    pub fn boots(&self) -> (Vec<BootLook>, Option<String>) {
        boots::looks(&self.root, &self.named)
    }

    /// Keeps the first look after a boot, and the first at which a pool has fewer pages. It makes a damaged file anew, with what is
    /// left, and says so in the error.
    pub fn remember_boot(&self, look: &BootLook) -> anyhow::Result<()> {
        let (looks, damage) = self.boots();
        let of_boot = looks.iter().filter(|known| known.boot_id == look.boot_id);
        let is_new = match of_boot.collect::<Vec<_>>()[..] {
            [] => !look.boot_id.is_empty(),
            [first] => boots::has_fewer(look, first),
            _ => false,
        };
        if !is_new && damage.is_none() {
            return Ok(());
        }
        let path = boots::path(&self.directory);
        privileges::replace_file(
            &path,
            boots::text_with(looks, is_new.then_some(look)).as_bytes(),
        )
        .with_context(|| format!("could not write {}", path.display()))?;
        damage.map_or(Ok(()), |why| {
            bail!("{why}, so it was made anew; what it said of earlier boots may be lost")
        })
    }

    /// Compares each instance with its history and records changes. Keeps `size` records per instance; 0 keeps none.
    pub fn record(&mut self, survey: &Survey, size: usize) -> Vec<InstanceEvents> {
        // Containers come and go for years.
        let running: BTreeSet<_> = survey
            .instances
            .iter()
            .map(|instance| self.path(&instance.id))
            .collect();
        self.known.retain(|path, _| running.contains(path));
        survey
            .instances
            .iter()
            .map(|instance| self.record_instance(instance, survey, size))
            .collect()
    }

    fn record_instance(
        &mut self,
        instance: &Instance,
        survey: &Survey,
        size: usize,
    ) -> InstanceEvents {
        let path = self.path(&instance.id);
        let mut known = self.known.remove(&path).unwrap_or_default();
        // Without a history, compare only with surveys of this process.
        let stored = match known.last.take() {
            None if size > 0 => {
                self.of_watch(&instance.id, self.last_record(&instance.id, |_| true))
                    .1
            }
            last => Ok(last),
        };
        let (before, error) = stored.map_or_else(|why| (None, Some(why)), |before| (before, None));
        let record = self.record_of(instance, survey, before.as_ref(), known.pid);
        let report = report(&instance.status, record, before.as_ref());
        known.pid = Some(instance.id.pid);
        known.unwritten.extend(report.record.clone());
        known.last = report.record.or(before);
        let written = known.write(&HistoryFile::at(&path), size);
        remembered::was_seen(&path);
        self.known.insert(path, known);
        InstanceEvents {
            instance: instance.id.name.clone(),
            messages: report.messages,
            error: error.or(written.err().map(|error| error.to_string())),
        }
    }

    /// The record of this survey. `before`: the last one; `pid`: the process that the last survey saw.
    fn record_of(
        &self,
        instance: &Instance,
        survey: &Survey,
        before: Option<&Record>,
        pid: Option<i32>,
    ) -> Record {
        let Instance {
            id: instance,
            status,
            ..
        } = instance;
        // After a start of this program only the start time identifies the process, which is not exact.
        let is_same_process = |before: &&Record| {
            pid.map_or_else(
                || is_of_same_process(before, instance),
                |pid| pid == instance.pid,
            )
        };
        // Who was taken for gone begins anew.
        let before = before.filter(|before| before.event != Event::Gone);
        let allocations = before.filter(is_same_process);
        let event = match (before, allocations) {
            (Some(before), _) if self.is_of_same_start(before, instance) => Event::Change,
            (_, Some(_)) => Event::CrashRestart,
            _ => Event::Start,
        };
        let generation =
            allocations.map_or(0, |before| before.generation) + i64::from(event.is_start());
        let started = || {
            instance
                .started
                .map(|at| format_rfc3339_micros(at).to_string())
                .unwrap_or_default()
        };
        let taken_at = format_rfc3339_micros(survey.host.taken_at).to_string();
        let key = instance.key();
        let host_directory = instance.place.host_directory.clone();
        Record {
            // Keep the first recorded value: the clock may be corrected.
            postmaster_start: allocations
                .map_or_else(started, |before| before.postmaster_start.clone()),
            generation,
            server_version: instance.version.clone().unwrap_or_default(),
            host: survey.host.host_name.clone().unwrap_or_default(),
            boot_id: self.boot_id.clone(),
            mount: remembered::directory_of(&key, host_directory.as_ref())
                .and_then(|directory| remembered::mount_above(&self.root, directory)),
            key: Some(key),
            host_directory,
            segment: instance.allocation,
            ..Record::new(
                event,
                taken_at,
                state::instance_identity(instance, self.machine.clone()),
                status,
            )
        }
    }

    /// Whether a record is of the current shared memory.
    fn is_of_same_start(&self, record: &Record, instance: &ServerIdentity) -> bool {
        match (record.segment, instance.allocation) {
            (Some(recorded), Some(now)) => recorded == now && record.boot_id == self.boot_id,
            _ => is_of_same_process(record, instance),
        }
    }

    fn path(&self, instance: &ServerIdentity) -> PathBuf {
        state::history_file(&self.directory, &instance.key())
    }
}

impl KnownInstance {
    /// Appends what is not written.
    fn write(&mut self, file: &HistoryFile, size: usize) -> anyhow::Result<()> {
        let surplus = self.unwritten.len().saturating_sub(MAX_UNWRITTEN_RECORDS);
        self.unwritten.drain(..surplus);
        if size == 0 || self.unwritten.is_empty() {
            return Ok(());
        }
        privileges::write(|| {
            while let Some(record) = self.unwritten.first() {
                file.append(record)?;
                self.unwritten.remove(0);
            }
            file.trim(size)?;
            Ok(())
        })
    }
}

/// What a record tells beside the one before it.
fn report(status: &Status, record: Record, before: Option<&Record>) -> EventReport {
    if record.event.is_start() {
        return worker_events::start(status, record, before);
    }
    let mut warned = before
        .map(|before| before.threats.clone())
        .unwrap_or_default();
    // A record does not say whether its threat of the next start spoke of a crash as well.
    if warned.iter().any(|threat| threat.is_of_restart())
        && status.warnings().contains(&Threat::CrashLoses)
    {
        warned.push(Threat::CrashLoses);
    }
    worker_events::update(status, record, before, &warned)
}

/// Whether a record is of the postmaster or PMON that runs now. The kernel counts process ages in hundredths of a second.
fn is_of_same_process(record: &Record, instance: &ServerIdentity) -> bool {
    const TOLERANCE: Duration = Duration::from_secs(2);
    let recorded = humantime::parse_rfc3339(&record.postmaster_start).ok();
    recorded
        .zip(instance.started)
        .is_some_and(|(recorded, now)| recorded < now + TOLERANCE && now < recorded + TOLERANCE)
}
