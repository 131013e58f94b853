//! A snapshot of a host as the files have it.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::oracle::columns::{FILES, columns, common_record};
use crate::oracle::record_line::{header, line};
use crate::oracle::schema::{Column, DataFile, FileRecord};

/// A snapshot of a host, from a survey or from JSON.
#[derive(Clone, Debug)]
pub struct OracleSnapshot {
    /// The time of the snapshot.
    pub taken_at: SystemTime,
    /// The name of the host.
    pub host_name: String,
    /// The records of each of [`FILES`]. [`OracleSnapshot::files`] sets the record counts in that of the host.
    pub records: [Vec<FileRecord>; 6],
}

/// A snapshot as JSON: for each file its records, by the name of its function, each with the columns that are not NULL.
#[derive(Deserialize)]
struct GivenSnapshot {
    #[serde(default)]
    host_name: String,
    #[serde(flatten)]
    records: BTreeMap<String, Vec<BTreeMap<String, Value>>>,
}

impl OracleSnapshot {
    /// From JSON, so that tests can write any value.
    pub fn from_json(text: &str) -> Result<Self> {
        let given: GivenSnapshot = serde_json::from_str(text)?;
        let is_known = |name: &String| FILES.into_iter().flat_map(columns).any(|column| column.name == *name);
        ensure!(given.records.values().flatten().all(|record| record.keys().all(is_known)), "a column is unknown");
        let record = |file: &DataFile, record: &BTreeMap<String, Value>| {
            let named = record.iter().map(|(name, value)| (name.clone().into(), value.clone()));
            file.record(file.own.iter().map(|_| None), named)
        };
        let records = FILES.map(|file| {
            given.records.get(file.function).into_iter().flatten().map(|values| record(file, values)).collect()
        });
        Ok(Self { taken_at: SystemTime::now(), host_name: given.host_name, records })
    }

    /// The name and the text of each file. `id`: that of the snapshot, in all records.
    pub fn files(&self, id: &str) -> Vec<(&'static str, String)> {
        let common = common_record(id, self.taken_at, &self.host_name, []);
        let count = |column: &Column| {
            let mut files = FILES.iter().zip(&self.records);
            files.find(|(file, _)| file.count == column.name).map(|(_, records)| records.len().into())
        };
        let text = |(file, records): (&DataFile, &Vec<FileRecord>)| {
            let line = |record: &FileRecord| {
                let own = file.own.iter().zip(record).map(|(column, value)| count(column).unwrap_or(value.clone()));
                let values: Vec<_> = common.iter().cloned().chain(own).collect();
                line(columns(file), &values)
            };
            (file.file, header(columns(file)) + &records.iter().map(line).collect::<String>())
        };
        FILES.into_iter().zip(&self.records).map(text).collect()
    }
}

/// Nanoseconds since 1970 in hexadecimal: unique per snapshot of a host, 16 digits up to the year 2554.
pub fn new_id() -> String {
    let nanoseconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{:016x}", u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}
