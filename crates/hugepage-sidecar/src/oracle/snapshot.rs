//! One moment of a host, as the files have it.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::oracle::columns::{CommonRecord, FORMAT_VERSION, FindingRecord, HostRecord, InstanceRecord, PoolRecord};
use crate::oracle::schema::{DataFile, FieldValue, FileRecord};

/// What was so on one host at one moment.
#[derive(Clone, Debug)]
pub struct OracleSnapshot {
    /// When it was so.
    pub taken_at: SystemTime,
    /// Where it was so.
    pub host_name: String,
    /// The host; its counts of records are filled in by [`OracleSnapshot::content`].
    pub host: HostRecord,
    /// Its pools.
    pub pools: Vec<PoolRecord>,
    /// Every instance that runs there.
    pub instances: Vec<InstanceRecord>,
    /// What to set.
    pub findings: Vec<FindingRecord>,
}

/// A file's records.
#[derive(Clone, Debug)]
pub struct FileContent {
    /// Which file.
    pub definition: &'static DataFile,
    /// Its records: values in the order of the columns, the common ones first.
    pub records: Vec<Vec<Option<FieldValue>>>,
}

/// The files of one snapshot, in the order of [`crate::oracle::columns::FILES`].
#[derive(Clone, Debug)]
pub struct SnapshotContent {
    /// The files, in that order.
    pub files: [FileContent; 4],
    snapshot_id: String,
}

impl SnapshotContent {
    /// What all records of the snapshot carry.
    pub fn snapshot_id(&self) -> &str {
        &self.snapshot_id
    }
}

impl OracleSnapshot {
    /// The records, marked as one snapshot's.
    pub fn content(&self) -> SnapshotContent {
        let snapshot_id = snapshot_id(SystemTime::now());
        let common = CommonRecord {
            format_version: Some(FORMAT_VERSION),
            snapshot_id: Some(snapshot_id.clone()),
            snapshot_utc: Some(self.taken_at),
            host_name: Some(self.host_name.clone()),
        };
        let host = HostRecord {
            pool_count: Some(self.pools.len() as u64),
            instance_count: Some(self.instances.len() as u64),
            finding_count: Some(self.findings.len() as u64),
            ..self.host.clone()
        };
        let common = common.values();
        let files = [
            file_content(&common, &self.pools),
            file_content(&common, &self.instances),
            file_content(&common, &self.findings),
            file_content(&common, &[host]),
        ];
        SnapshotContent { files, snapshot_id }
    }
}

fn file_content<R: FileRecord>(common: &[Option<FieldValue>], records: &[R]) -> FileContent {
    let with_common = |record: &R| common.iter().cloned().chain(record.values()).collect();
    FileContent { definition: &const { R::FILE }, records: records.iter().map(with_common).collect() }
}

/// Nanoseconds since 1970 in hexadecimal: another one for every snapshot of a host, and of 16 digits up to the year 2554.
fn snapshot_id(now: SystemTime) -> String {
    let nanoseconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{:016x}", u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}
