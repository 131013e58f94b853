//! A snapshot of a host as the files have it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};
use hugepage_assess::row;
use serde::Deserialize;
use serde_json::Value;

use crate::oracle::record_line::{header, line, seconds};
use crate::oracle::schema::{DataFile, FILES, FORMAT_VERSION};

/// The values of a record by the names of the columns. What no column lists is left out, and a column without a value is NULL.
pub type FileRecord = BTreeMap<Cow<'static, str>, Value>;

/// A snapshot of a host, from a survey or from JSON.
#[derive(Clone, Debug, Deserialize)]
pub struct OracleSnapshot {
    /// The time of the snapshot.
    #[serde(skip, default = "SystemTime::now")]
    pub taken_at: SystemTime,
    /// The name of the host.
    #[serde(default)]
    pub host_name: String,
    /// The records of each file, by the name of its function.
    #[serde(flatten)]
    pub records: BTreeMap<String, Vec<FileRecord>>,
}

impl OracleSnapshot {
    /// From JSON, so that tests can write any value.
    pub fn from_json(text: &str) -> Result<Self> {
        let given: Self = serde_json::from_str(text)?;
        let is_known = |name: &Cow<'_, str>| FILES.iter().flat_map(|file| &file.columns).any(|one| one.name == *name);
        ensure!(given.records.values().flatten().all(|record| record.keys().all(is_known)), "a column is unknown");
        Ok(given)
    }

    /// The name and the text of each file. `id`: that of the snapshot, in all records.
    pub fn files(&self, id: &str) -> Vec<(&'static str, String)> {
        let records = |file: &DataFile| self.records.get(&file.function).map_or(&[][..], Vec::as_slice);
        let common = row! {
            format_version: FORMAT_VERSION,
            snapshot_id: id,
            snapshot_utc: seconds(self.taken_at),
            host_name: self.host_name,
        };
        let counts = FILES.iter().map(|file| (Cow::from(&*file.count), records(file).len().into()));
        let common: FileRecord = common.into_iter().chain(counts).collect();
        let text = |file: &'static DataFile| {
            let value =
                |record: &FileRecord, name: &str| common.get(name).or(record.get(name)).cloned().unwrap_or_default();
            let lines = records(file).iter().map(|record| line(&file.columns, |name| value(record, name)));
            (&*file.file, header(&file.columns) + &lines.collect::<String>())
        };
        FILES.iter().map(text).collect()
    }
}

/// Nanoseconds since 1970 in hexadecimal: unique per snapshot of a host, 16 digits up to the year 2554.
pub fn new_id() -> String {
    let nanoseconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{:016x}", u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}
