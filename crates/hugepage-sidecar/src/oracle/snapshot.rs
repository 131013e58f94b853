//! A snapshot of a host as the files have it.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::Value;

use crate::oracle::columns::{CommonRecord, FORMAT_VERSION, HostRecord, PoolRecord};
use crate::oracle::instance_columns::{FindingRecord, InstanceRecord, SegmentRecord, StartRecord};
use crate::oracle::record_line::seconds;
use crate::oracle::schema::{DataFile, FileRecord};

/// A snapshot of a host, from a survey or, so that tests can write any value, from JSON with the columns that are not NULL.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OracleSnapshot {
    /// The time of the snapshot.
    #[serde(skip, default = "SystemTime::now")]
    pub taken_at: SystemTime,
    /// The name of the host.
    #[serde(default)]
    pub host_name: String,
    /// The record of the host. [`OracleSnapshot::content`] sets its record counts.
    #[serde(default)]
    pub host: HostRecord,
    /// The records of the pools.
    #[serde(default)]
    pub pools: Vec<PoolRecord>,
    /// The records of all running instances.
    #[serde(default)]
    pub instances: Vec<InstanceRecord>,
    /// The records of the recommendations.
    #[serde(default)]
    pub findings: Vec<FindingRecord>,
    /// The segments of the running Oracle instances.
    #[serde(default)]
    pub segments: Vec<SegmentRecord>,
    /// The starts in the alert logs.
    #[serde(default)]
    pub starts: Vec<StartRecord>,
}

/// The records of a file.
#[derive(Clone, Debug)]
pub struct FileContent {
    /// The definition of the file.
    pub definition: &'static DataFile,
    /// Values in the order of the columns, the common ones first.
    pub records: Vec<Vec<Value>>,
}

/// The files of one snapshot, in the order of [`crate::oracle::columns::FILES`].
#[derive(Clone, Debug)]
pub struct SnapshotContent {
    /// The files, in that order.
    pub files: [FileContent; 6],
    snapshot_id: String,
}

impl SnapshotContent {
    /// The ID in all records of the snapshot.
    pub fn snapshot_id(&self) -> &str {
        &self.snapshot_id
    }
}

impl OracleSnapshot {
    /// The records with the common columns.
    pub fn content(&self) -> SnapshotContent {
        let snapshot_id = snapshot_id(SystemTime::now());
        let common = CommonRecord {
            format_version: Some(FORMAT_VERSION),
            snapshot_id: Some(snapshot_id.clone()),
            snapshot_utc: seconds(self.taken_at),
            host_name: Some(self.host_name.clone()),
        };
        let host = HostRecord {
            pool_count: Some(self.pools.len() as u64),
            instance_count: Some(self.instances.len() as u64),
            finding_count: Some(self.findings.len() as u64),
            segment_count: Some(self.segments.len() as u64),
            start_count: Some(self.starts.len() as u64),
            ..self.host.clone()
        };
        let common = common.values();
        let files = [
            file_content(&common, &self.pools),
            file_content(&common, &self.instances),
            file_content(&common, &self.findings),
            file_content(&common, &self.segments),
            file_content(&common, &self.starts),
            file_content(&common, &[host]),
        ];
        SnapshotContent { files, snapshot_id }
    }
}

fn file_content<R: FileRecord>(common: &[Value], records: &[R]) -> FileContent {
    let with_common = |record: &R| common.iter().cloned().chain(record.values()).collect();
    FileContent { definition: &const { R::FILE }, records: records.iter().map(with_common).collect() }
}

/// Nanoseconds since 1970 in hexadecimal: unique per snapshot of a host, 16 digits up to the year 2554.
fn snapshot_id(now: SystemTime) -> String {
    let nanoseconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{:016x}", u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}
