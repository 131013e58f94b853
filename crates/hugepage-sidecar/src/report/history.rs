//! The histories of an instance: the one that PostgreSQL keeps with the extension preloaded, and the one of `watch`.

use std::io::ErrorKind;
use std::path::Path;

use hugepage_core::ReadError;
use hugepage_core::collect::instances::{Instance, Kind};
use hugepage_core::history::record::{Instance as Whose, Record};
use hugepage_core::history::{History, HistoryError, HistoryFile};
use hugepage_core::read::instance_files::limit;
use hugepage_core::read::root::if_there;
use hugepage_core::read::{InstanceFiles, Root, identity};

use crate::state;

/// In the data directory.
const OF_SERVER: &str = "pg_hugepages.history";

/// One history.
#[derive(Debug)]
pub struct Kept {
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
pub fn of(root: &Root, instance: &Instance, state_directory: &Path) -> (Vec<Kept>, Vec<String>) {
    let mut files = Vec::new();
    if let (Kind::PostgreSql, Some(directory)) = (instance.kind, &instance.directory) {
        let path = Path::new(directory).join(OF_SERVER).to_string_lossy().into_owned();
        // What the server has written is read as the server's user, from its container too.
        let history = of_files(&InstanceFiles::of_process(root, instance.pid), &path);
        files.push(("the server", path, history));
    }
    let path = state::history(state_directory, &instance.kind.to_string(), &instance.name);
    let path = path.to_string_lossy().into_owned();
    let history = match root.is_tree() {
        true => of_files(&InstanceFiles::own(root), &path),
        false => HistoryFile::at(&path).read_of_any_owner().map_err(|error| reason(&path, error)),
    };
    files.push(("hugepage-sidecar watch", path, history));

    let whose = whose(root, instance);
    let (mut kept, mut notes) = (Vec::new(), Vec::new());
    for (by, path, history) in files {
        match history {
            Ok(history) => {
                let is_ours =
                    |record: &Record| whose.is_empty() || whose.iter().any(|now| record.instance.is_past_of(now));
                let (records, foreign): (Vec<_>, Vec<_>) = history.records.into_iter().partition(is_ours);
                kept.push(Kept { by, path, records, damaged: history.damaged, foreign: foreign.len() });
            }
            Err(note) => notes.push(note),
        }
    }
    (kept, notes)
}

fn of_files(files: &InstanceFiles, path: &str) -> Result<History, String> {
    match if_there(files.read_last(path, limit::HISTORY)) {
        Ok(bytes) => Ok(History::parse(&bytes.unwrap_or_default())),
        Err(ReadError::Io { source, .. }) if source.kind() == ErrorKind::PermissionDenied => Err(may_not_be_read(path)),
        Err(error) => Err(error.to_string()),
    }
}

fn reason(path: &str, error: HistoryError) -> String {
    match error {
        HistoryError::Io { source, .. } if source.kind() == ErrorKind::PermissionDenied => may_not_be_read(path),
        error => error.to_string(),
    }
}

/// Who may not look into a data directory can't know whether there is one.
fn may_not_be_read(path: &str) -> String {
    format!("\"{path}\" may not be read: run this as root")
}

/// Whom the records have to speak of: this machine or the container that the server sees; empty if that can't be told,
/// as of Oracle, whose files hold one instance alone.
fn whose(root: &Root, instance: &Instance) -> Vec<Whose> {
    if instance.directory.is_none() || instance.system_identifier.is_none() {
        return Vec::new();
    }
    let container = root.below(&format!("/proc/{}/root", instance.pid));
    let machines = [root, &container].map(|root| identity::machine(root).ok());
    let named = container.read("/etc/hostname").ok().map(|name| name.trim().to_owned());
    machines.into_iter().chain([named]).flatten().map(|machine| state::whose(instance, machine)).collect()
}
