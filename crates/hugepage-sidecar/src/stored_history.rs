//! The stored histories of an instance: that of the preloaded PostgreSQL extension, and that of `watch`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use hugepage_assess::history::record::{InstanceIdentity, Record};
use hugepage_host::{ServerIdentity, readers};
use hugepage_kernel::host::identity;
use hugepage_kernel::source::root::if_there;
use hugepage_kernel::stranger::limit;
use hugepage_kernel::{InstanceFiles, ReadError, Root};
use hugepage_server::history::stored::last_record;
use hugepage_server::history::{History, HistoryError, HistoryFile, file};

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

/// The histories of the instance, and notes on files that could not be read.
pub fn read(root: &Root, instance: &ServerIdentity, state_directory: &Path) -> (Vec<StoredHistory>, Vec<String>) {
    let (mut histories, mut notes) = (Vec::new(), Vec::new());
    for history in [of_server(root, instance), Some(of_watch(root, instance, state_directory))].into_iter().flatten() {
        match history {
            Ok(history) => histories.push(history),
            Err(note) => notes.push(note),
        }
    }
    (histories, notes)
}

/// The history that the server itself writes; `None` for a product that has none. The error says why it was not read.
fn of_server(root: &Root, instance: &ServerIdentity) -> Option<Result<StoredHistory, String>> {
    let path = path_of_server(instance)?;
    // The server's own file is read as the server's user, also in its container.
    let read = || of_files(&InstanceFiles::of_process(root, instance.pid), &path);
    let history = readers::read_as(&instance.reader, read).unwrap_or_else(|why| Err(why.to_string()));
    Some(history.map(|history| StoredHistory::of_instance(root, instance, "the server", path, history)))
}

/// The record that the server itself made of its last start; `None` if there is none. The error says why it was not read.
pub fn last_start_of_server(root: &Root, instance: &ServerIdentity) -> Result<Option<Record>, String> {
    let Some(path) = path_of_server(instance) else { return Ok(None) };
    let identities = identities(root, instance);
    let is_its_start = |record: &Record| record.event.is_start() && is_of_instance(record, &identities);
    let read = || {
        let files = InstanceFiles::of_process(root, instance.pid);
        let Some(file) = there(&files, &path, || files.open(&path))? else { return Ok(None) };
        last_record(&file, limit::HISTORY, is_its_start)
            .map_err(|source| files.root().error("read", &path, source).to_string())
    };
    readers::read_as(&instance.reader, read).unwrap_or_else(|why| Err(why.to_string()))
}

fn path_of_server(instance: &ServerIdentity) -> Option<String> {
    let directory = instance.postgresql()?.directory.as_ref()?;
    Some(file::path_of_server(Path::new(directory)).to_string_lossy().into_owned())
}

fn of_watch(root: &Root, instance: &ServerIdentity, state_directory: &Path) -> Result<StoredHistory, String> {
    let read = |path: PathBuf| {
        let path = path.to_string_lossy().into_owned();
        let history = match root.is_tree() {
            true => of_files(&InstanceFiles::own(root), &path),
            false => HistoryFile::at(&path).read_of_any_owner().map_err(|error| note(&path, error)),
        }?;
        Ok::<_, String>((path, history))
    };
    let (mut path, mut history) = read(state::history_file(state_directory, instance))?;
    if history.records.is_empty() {
        // Until `watch` of this version has run.
        (path, history) = read(state::history_file_of_all_homes(state_directory, instance))?;
    }
    Ok(StoredHistory::of_instance(root, instance, "hugepage-sidecar watch", path, history))
}

impl StoredHistory {
    /// Keeps the records of the instance, and counts the others.
    fn of_instance(root: &Root, instance: &ServerIdentity, by: &'static str, path: String, history: History) -> Self {
        let identities = identities(root, instance);
        let (records, foreign): (Vec<_>, Vec<_>) =
            history.records.into_iter().partition(|record| is_of_instance(record, &identities));
        Self { by, path, records, damaged: history.damaged, foreign: foreign.len() }
    }
}

/// The history in a server's file; the error is a note.
fn of_files(files: &InstanceFiles, path: &str) -> Result<History, String> {
    let bytes = there(files, path, || files.read_last(path, limit::HISTORY))?;
    Ok(History::parse(&bytes.unwrap_or_default()))
}

/// What was read of a history that a server wrote; `None` if there is no such file. The error is a note.
fn there<T>(
    files: &InstanceFiles,
    path: &str,
    read: impl FnOnce() -> Result<T, ReadError>,
) -> Result<Option<T>, String> {
    // The server never makes one, and its target may not exist in a tree.
    if files.read_link(path).is_ok() {
        return Err(format!("\"{path}\" is a symbolic link, not a history file"));
    }
    if_there(read()).map_err(|error| match error {
        ReadError::Io { source, .. } if source.kind() == ErrorKind::PermissionDenied => not_readable(path),
        error => error.to_string(),
    })
}

fn note(path: &str, error: HistoryError) -> String {
    match error {
        HistoryError::Io { source, .. } if source.kind() == ErrorKind::PermissionDenied => not_readable(path),
        error => error.to_string(),
    }
}

/// The note on a data directory without access, in which it is unknown whether a history exists.
fn not_readable(path: &str) -> String {
    format!("\"{path}\" is not readable: run this as root")
}

/// Whether a record is of the instance, and not of another such as the original of a copy.
fn is_of_instance(record: &Record, identities: &[InstanceIdentity]) -> bool {
    identities.is_empty() || identities.iter().any(|now| record.instance.is_past_of(now))
}

/// The identities that records of the instance may have: on this machine, or in the container of the server. Empty if
/// unknown, and for Oracle, where a file holds one instance.
fn identities(root: &Root, instance: &ServerIdentity) -> Vec<InstanceIdentity> {
    if instance.postgresql().is_none_or(|server| server.directory.is_none() || server.system_identifier.is_none()) {
        return Vec::new();
    }
    let machines = identity::host_name(root).into_iter().chain(instance.place.host_name.clone());
    machines.map(|machine| state::instance_identity(instance, machine)).collect()
}
