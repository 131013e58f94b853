//! What was recorded of an instance: by the preloaded PostgreSQL extension, or by `watch`.

use std::io::{self, ErrorKind};
use std::path::Path;

use hugepage_assess::history::Record;
use hugepage_facts::{Past, ServerIdentity};
use hugepage_host::readers;
use hugepage_kernel::{InstanceFiles, Notes, ReadError, if_there, limit};
use hugepage_server::history::History;
use hugepage_server::history::file::path_of_server;
use hugepage_server::history::stored::StoredRecords;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::HostHistory;
use crate::state;

/// The history of one instance, as it is stored.
#[derive(Debug)]
pub struct StoredHistory {
    /// The writer.
    pub by: &'static str,
    /// The path of the file.
    pub path: String,
    /// The records of this instance, the oldest first.
    pub records: Vec<Record>,
    /// Number of damaged lines.
    pub damaged: usize,
    /// Number of records of other instances, such as the original of a copy.
    pub foreign: usize,
}

impl HostHistory {
    /// What was recorded at the current start of an instance. The record of the server itself comes first: the extension shows
    /// the same. A history of the server's own that cannot be read is a note; another is skipped.
    pub fn recall(&self, instance: &ServerIdentity, notes: &mut Notes) -> Past {
        // The newest record is that of the current shared memory, or there is none.
        let by_server = self.of_server(
            instance,
            self.last_record(instance, |record| record.event.is_start()),
        );
        let by_server = by_server.and_then(|(_, found)| notes.keep(found)).flatten();
        let by_server = by_server.filter(|record| self.is_of_same_start(record, instance));
        let is_by_server = by_server.is_some();
        by_server
            .or_else(|| self.start_by_watch(instance))
            .map_or_else(Past::default, |record| Past {
                cause_at_start: record.cause,
                // The files that `watch` read may have changed since the start.
                needed_at_start: record.pages_needed.filter(|_| is_by_server),
                loss: record.loss(),
            })
    }

    /// The record that `watch` made of the current start; `None` if there is none.
    fn start_by_watch(&self, instance: &ServerIdentity) -> Option<Record> {
        let is_its_start =
            |record: &Record| record.event.is_start() && self.is_of_same_start(record, instance);
        let mut unwritten = self
            .known
            .get(&self.path(instance))
            .into_iter()
            .flat_map(|known| &known.unwritten);
        let unwritten = unwritten.rfind(|record| is_its_start(record)).cloned();
        unwritten.or_else(|| {
            self.of_watch(instance, self.last_record(instance, is_its_start))
                .1
                .ok()
                .flatten()
        })
    }

    /// The histories of the instance, and notes on files that could not be read.
    pub fn stored(&self, instance: &ServerIdentity) -> (Vec<StoredHistory>, Vec<String>) {
        let all = |records: StoredRecords| records.read(limit::HISTORY);
        let of_server = self
            .of_server(instance, all)
            .map(|found| ("the server", found));
        let of_watch = ("hugepage-sidecar watch", self.of_watch(instance, all));
        let mut histories = Vec::new();
        let mut notes = Vec::new();
        for (by, (path, found)) in of_server.into_iter().chain([of_watch]) {
            match found {
                Ok(History { records, damaged }) => {
                    let is_of_instance = self.is_of(instance);
                    let (records, foreign): (Vec<_>, Vec<_>) =
                        records.into_iter().partition(is_of_instance);
                    histories.push(StoredHistory {
                        by,
                        path,
                        records,
                        damaged,
                        foreign: foreign.len(),
                    });
                }
                Err(note) => notes.push(note),
            }
        }
        (histories, notes)
    }

    /// What finds in a history the last record of the instance for which `wanted` holds.
    pub(super) fn last_record(
        &self,
        instance: &ServerIdentity,
        wanted: impl Fn(&Record) -> bool,
    ) -> impl Fn(StoredRecords) -> io::Result<Option<Record>> {
        let is_of_instance = self.is_of(instance);
        move |records| {
            records.last(limit::HISTORY, |record| {
                is_of_instance(record) && wanted(record)
            })
        }
    }

    /// The path of the server's own history, and what `read` finds in it; the error is a note. `None` if its product writes none.
    fn of_server<T: Default + Serialize + DeserializeOwned>(
        &self,
        instance: &ServerIdentity,
        read: impl Fn(StoredRecords) -> io::Result<T>,
    ) -> Option<(String, Result<T, String>)> {
        let directory = instance.postgresql()?.directory.as_ref()?;
        let path = path_of_server(Path::new(directory))
            .to_string_lossy()
            .into_owned();
        // As the server's user, also in its container.
        let read = || {
            opened(
                &InstanceFiles::of_process(&self.root, instance.pid),
                &path,
                &read,
            )
        };
        let found =
            readers::read_as(&instance.reader, read).unwrap_or_else(|why| Err(why.to_string()));
        Some((path, found))
    }

    /// The path of the history that `watch` writes, and what `read` finds in it; the error is a note.
    pub(super) fn of_watch<T: Default>(
        &self,
        instance: &ServerIdentity,
        read: impl Fn(StoredRecords) -> io::Result<T>,
    ) -> (String, Result<T, String>) {
        let path = state::history_file(&self.named, &instance.key())
            .to_string_lossy()
            .into_owned();
        let found = opened(&InstanceFiles::own(&self.root), &path, read);
        (path, found)
    }

    /// Whether a record is of the instance, as it is on this machine or in its container, and not of another such as the
    /// original of a copy. One whose identity is unknown has all, and so has Oracle's, of which a file holds one.
    fn is_of(&self, instance: &ServerIdentity) -> impl Fn(&Record) -> bool {
        let server = instance.postgresql();
        let is_known = server
            .is_some_and(|server| server.directory.is_some() && server.system_identifier.is_some());
        let machines = [Some(&self.machine), instance.place.host_name.as_ref()]
            .into_iter()
            .flatten();
        let now: Vec<_> = machines
            .map(|machine| state::instance_identity(instance, machine.clone()))
            .collect();
        move |record| !is_known || now.iter().any(|now| record.instance.is_past_of(now))
    }
}

/// What `read` finds in a history; nothing if there is no such file.
pub(super) fn opened<T: Default>(
    files: &InstanceFiles,
    path: &str,
    read: impl Fn(StoredRecords) -> io::Result<T>,
) -> Result<T, String> {
    // No writer makes one, and its target may not exist in a tree.
    if files.read_link(path).is_ok() {
        return Err(format!("\"{path}\" is a symbolic link, not a history file"));
    }
    match if_there(files.open(path)) {
        Ok(Some(file)) => read(StoredRecords::of(path, file)).map_err(|error| error.to_string()),
        Ok(None) => Ok(T::default()),
        // It is unknown whether there is one.
        Err(ReadError::Io { source, .. }) if source.kind() == ErrorKind::PermissionDenied => {
            Err(format!("\"{path}\" is not readable: run this as root"))
        }
        Err(error) => Err(error.to_string()),
    }
}
