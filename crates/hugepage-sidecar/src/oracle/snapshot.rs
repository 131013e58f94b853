//! One moment of a host, as the files have it.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::oracle::columns::{Common, FORMAT_VERSION, Finding, Host, Instance, Pool};
use crate::oracle::schema::{File, Record, Value};

/// What was so on one host at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// When it was so.
    pub taken_at: SystemTime,
    /// Where it was so.
    pub host_name: String,
    /// The host; its counts of records are filled in by [`Snapshot::tables`].
    pub host: Host,
    /// Its pools.
    pub pools: Vec<Pool>,
    /// Every instance that runs there.
    pub instances: Vec<Instance>,
    /// What to set.
    pub findings: Vec<Finding>,
}

/// A file's records.
#[derive(Clone, Debug)]
pub struct Table {
    /// Which file.
    pub file: &'static File,
    /// Its records: values in the order of the columns, the common ones first.
    pub records: Vec<Vec<Option<Value>>>,
}

/// The files of one snapshot, in the order of [`crate::oracle::columns::FILES`].
#[derive(Clone, Debug)]
pub struct Tables(pub [Table; 4], String);

impl Tables {
    /// What all records of the snapshot carry.
    pub fn snapshot_id(&self) -> &str {
        &self.1
    }
}

impl Snapshot {
    /// The records, marked as one snapshot's.
    pub fn tables(&self) -> Tables {
        let snapshot_id = snapshot_id(SystemTime::now());
        let common = Common {
            format_version: Some(FORMAT_VERSION),
            snapshot_id: Some(snapshot_id.clone()),
            snapshot_utc: Some(self.taken_at),
            host_name: Some(self.host_name.clone()),
        };
        let host = Host {
            pool_count: Some(self.pools.len() as u64),
            instance_count: Some(self.instances.len() as u64),
            finding_count: Some(self.findings.len() as u64),
            ..self.host.clone()
        };
        let common = common.values();
        let tables = [
            table(&common, &self.pools),
            table(&common, &self.instances),
            table(&common, &self.findings),
            table(&common, &[host]),
        ];
        Tables(tables, snapshot_id)
    }
}

fn table<R: Record>(common: &[Option<Value>], records: &[R]) -> Table {
    let with_common = |record: &R| common.iter().cloned().chain(record.values()).collect();
    Table { file: &const { R::FILE }, records: records.iter().map(with_common).collect() }
}

/// Nanoseconds since 1970 in hexadecimal: another one for every snapshot of a host, and of 16 digits up to the year 2554.
fn snapshot_id(now: SystemTime) -> String {
    let nanoseconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{:016x}", u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}
