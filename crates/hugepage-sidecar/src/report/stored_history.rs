//! The histories of an instance: the one that PostgreSQL keeps with the extension preloaded, and the one of `watch`.

use std::path::Path;

use hugepage_core::collect::instances::{Instance, InstanceKind};
use hugepage_core::history::record::{InstanceIdentity, Record};
use hugepage_core::history::{HistoryError, HistoryFile};
use hugepage_core::read::{Root, identity};

use crate::state;

/// In the data directory.
const SERVER_FILE: &str = "pg_hugepages.history";

/// One history.
#[derive(Debug)]
pub struct StoredHistory {
    /// Who wrote it.
    pub by: &'static str,
    /// Where it is.
    pub path: String,
    /// The records of this very instance, the oldest first.
    pub records: Vec<Record>,
    /// How many lines are damaged.
    pub damaged: usize,
    /// How many records are those of other instances, such as the one that this is a copy of.
    pub foreign: usize,
}

/// Every history of the instance that there is; what could not be read is a note.
pub fn read(root: &Root, instance: &Instance, state_directory: &Path) -> (Vec<StoredHistory>, Vec<String>) {
    let mut files = Vec::new();
    if let (InstanceKind::PostgreSql, Some(directory)) = (instance.kind, &instance.directory) {
        let path = Path::new(directory).join(SERVER_FILE).to_string_lossy().into_owned();
        // A postmaster works in its data directory, and the kernel knows the way there also into a container.
        let location = match root.is_live() {
            true => root.path(&format!("/proc/{}/cwd/{SERVER_FILE}", instance.pid)),
            false => root.path(&path),
        };
        files.push(("the server", path, location));
    }
    let path = state::history_file(state_directory, &instance.kind.to_string(), &instance.name);
    let path = path.to_string_lossy().into_owned();
    let location = root.path(&path);
    files.push(("hugepage-sidecar watch", path, location));

    let identities = identities(root, instance);
    let (mut histories, mut notes) = (Vec::new(), Vec::new());
    for (by, path, location) in files {
        match HistoryFile::at(location).read_of_any_owner() {
            Ok(history) => {
                let is_of_instance = |record: &Record| {
                    identities.is_empty() || identities.iter().any(|now| record.instance.is_past_of(now))
                };
                let (records, foreign): (Vec<_>, Vec<_>) = history.records.into_iter().partition(is_of_instance);
                histories.push(StoredHistory { by, path, records, damaged: history.damaged, foreign: foreign.len() });
            }
            // Who may not look into a data directory can't know whether there is one.
            Err(HistoryError::Io { source, .. }) if source.kind() == std::io::ErrorKind::PermissionDenied => {
                notes.push(format!("\"{path}\" may not be read: run this as root"));
            }
            Err(error) => notes.push(error.to_string()),
        }
    }
    (histories, notes)
}

/// Whom the records have to speak of: this machine or the container that the server sees; empty if that can't be told,
/// as of Oracle, identities files hold one instance alone.
fn identities(root: &Root, instance: &Instance) -> Vec<InstanceIdentity> {
    if instance.directory.is_none() || instance.system_identifier.is_none() {
        return Vec::new();
    }
    let container = root.below(&format!("/proc/{}/root", instance.pid));
    let machines = [root, &container].map(|root| identity::machine(root).ok());
    let named = container.read("/etc/hostname").ok().map(|name| name.trim().to_owned());
    machines.into_iter().chain([named]).flatten().map(|machine| state::instance_identity(instance, machine)).collect()
}
