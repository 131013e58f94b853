//! Text files for Oracle Database on this host, and the SQL that defines views of them.
//!
//! sql/files.txt defines the files ([`schema`]); the writer and the SQL are derived from it. An [`OracleSnapshot`] becomes text by
//! [`record_line`], and that the [`files`]. Oracle runs no program of this project, and this program does not
//! connect to Oracle: see docs/oracle.md for the reasons.

pub mod files;
pub mod log_starts;
mod record_line;
mod schema;
pub mod scripts;
pub mod survey_snapshot;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};
use hugepage_assess::row;
use serde::Deserialize;
use serde_json::Value;

use self::files::{Writer, WriterOptions};
use self::record_line::{header, line, seconds};
use self::schema::{DataFile, FILES, FORMAT_VERSION};
use crate::privileges;

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

    /// Writes the files into `directory` and returns their snapshot_id. An error before the first rename leaves the old.
    pub fn write(&self, directory: &Path, options: &WriterOptions) -> Result<String> {
        let id = new_id();
        let files = self.files(&id);
        privileges::write(|| Writer::new(directory, options)?.replace(&files))?;
        Ok(id)
    }

    /// The text of one file, such as `hp_pool.dat`; `None` if there is no file of that name.
    pub fn text(&self, name: &str) -> Option<String> {
        self.files(&new_id()).into_iter().find(|(file, _)| *file == name).map(|(_, text)| text)
    }

    /// The name and the text of each file. `id`: that of the snapshot, in all records.
    fn files(&self, id: &str) -> Vec<(&'static str, String)> {
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
fn new_id() -> String {
    let nanoseconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{:016x}", u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}
