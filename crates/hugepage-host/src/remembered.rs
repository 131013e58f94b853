//! What is known of servers that can't be seen: what `watch` or their worker saw of them, and what root tells.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hugepage_assess::history::{Event, Record};
use hugepage_facts::{Cause, InstanceKey, Remembered};
use hugepage_kernel::host::identity;
use hugepage_kernel::{InstanceFiles, Pages, Root, RootFiles, limit};
use hugepage_server::history::file::path_of_server;
use hugepage_server::history::stored::StoredRecords;

/// Data directories of PostgreSQL servers that count, one a line; `#` begins a comment.
pub const POSTGRESQL_DATA: &str = "/etc/hugepage-sidecar/postgresql-data";

/// What a record says of the server `key`.
pub fn remembered(key: InstanceKey, record: &Record, last_seen: SystemTime) -> Remembered {
    Remembered {
        key,
        page_size: record.huge_page_size,
        pages_needed: match record.cause {
            Some(Cause::Disabled | Cause::MemoryTarget | Cause::SysvSharedMemory) => Some(Pages(0)),
            _ => record.pages_needed,
        },
        last_seen,
        boot_id: record.boot_id.clone(),
        is_gone: record.event == Event::Gone,
    }
}

/// The last record of the server `name` in the directory `data` of this host in its own history; `None` if it does not tell the need, or a file has changed since.
pub(super) fn by_worker(
    root: &Root,
    files: &InstanceFiles,
    sources: &[PathBuf],
    data: &Path,
    name: String,
) -> Option<Remembered> {
    let path = path_of_server(data);
    let path = path.to_string_lossy();
    let host = identity::host_name(root).ok()?;
    // A copy has the history of its original.
    let is_its = |record: &Record| {
        record.host == host
            && root.inode(&record.instance.directory) == root.inode(&data.to_string_lossy())
    };
    let records = StoredRecords::of(&*path, files.open(&path).ok()?);
    let record = records.last(limit::HISTORY, is_its).ok()??;
    let last_seen = humantime::parse_rfc3339(&record.recorded_at).ok()?;
    let is_as_then = |path: &PathBuf| {
        let change = files.last_change(path);
        change.is_ok_and(|change| change.is_none_or(|(at, _)| at < last_seen))
    };
    let key = InstanceKey {
        kind: "postgresql".to_owned(),
        name,
        ..InstanceKey::default()
    };
    let one = remembered(key, &record, last_seen);
    let is_known = one.pages_needed.is_some() && sources.iter().all(is_as_then);
    is_known.then_some(one)
}

/// The data directories in [`POSTGRESQL_DATA`]; none if there is no such file. The error is why it is not read.
pub fn told_servers(root: &Root) -> Result<Vec<PathBuf>, String> {
    let lines = RootFiles::new(root, 1).told_lines(POSTGRESQL_DATA)?;
    match lines.iter().find(|line| !line.starts_with('/')) {
        Some(line) => Err(format!(
            "{POSTGRESQL_DATA} has \"{line}\", no absolute path"
        )),
        None => Ok(lines.into_iter().map(PathBuf::from).collect()),
    }
}
