//! The stored histories of an instance: that of the preloaded PostgreSQL extension, and that of `watch`.

use std::io::ErrorKind;
use std::path::Path;

use hugepage_core::collect::instances::{Instance, InstanceKind};
use hugepage_core::history::record::{InstanceIdentity, Record};
use hugepage_core::history::{HistoryError, HistoryFile};
use hugepage_core::read::{Root, identity};

use crate::state;

/// The history file in a data directory.
const SERVER_FILE: &str = "pg_hugepages.history";

/// One history.
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
pub fn read(root: &Root, instance: &Instance, state_directory: &Path) -> (Vec<StoredHistory>, Vec<String>) {
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
pub fn of_server(root: &Root, instance: &Instance) -> Option<Result<StoredHistory, String>> {
    let directory = instance.directory.as_ref().filter(|_| instance.kind == InstanceKind::PostgreSql)?;
    let path = Path::new(directory).join(SERVER_FILE).to_string_lossy().into_owned();
    // The working directory of a postmaster is its data directory. This path also works for a container.
    let location = match root.is_live() {
        true => root.path(&format!("/proc/{}/cwd/{SERVER_FILE}", instance.pid)),
        false => root.path(&path),
    };
    Some(read_file(root, instance, "the server", path, &location))
}

fn of_watch(root: &Root, instance: &Instance, state_directory: &Path) -> Result<StoredHistory, String> {
    let path = state::history_file(state_directory, &instance.kind.to_string(), &instance.name);
    let path = path.to_string_lossy().into_owned();
    let location = root.path(&path);
    read_file(root, instance, "hugepage-sidecar watch", path, &location)
}

fn read_file(
    root: &Root,
    instance: &Instance,
    by: &'static str,
    path: String,
    location: &Path,
) -> Result<StoredHistory, String> {
    let history = HistoryFile::at(location).read_of_any_owner().map_err(|error| match error {
        // Without access to a data directory it is unknown whether a history exists.
        HistoryError::Io { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
            format!("\"{path}\" is not readable: run this as root")
        }
        error => error.to_string(),
    })?;
    let identities = identities(root, instance);
    let is_of_instance =
        |record: &Record| identities.is_empty() || identities.iter().any(|now| record.instance.is_past_of(now));
    let (records, foreign): (Vec<_>, Vec<_>) = history.records.into_iter().partition(is_of_instance);
    Ok(StoredHistory { by, path, records, damaged: history.damaged, foreign: foreign.len() })
}

/// The identities that records of the instance may have: on this machine, or in the container of the server. Empty if
/// unknown, and for Oracle, where a file holds one instance.
fn identities(root: &Root, instance: &Instance) -> Vec<InstanceIdentity> {
    if instance.directory.is_none() || instance.system_identifier.is_none() {
        return Vec::new();
    }
    let container = root.below(&format!("/proc/{}/root", instance.pid));
    let machines = [root, &container].map(|root| identity::machine(root).ok());
    let named = container.read("/etc/hostname").ok().map(|name| name.trim().to_owned());
    machines.into_iter().chain([named]).flatten().map(|machine| state::instance_identity(instance, machine)).collect()
}
