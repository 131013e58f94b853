//! Text files for Oracle Database on this host, and the SQL that defines views of them.
//!
//! columns.txt of `hugepage-assess` declares the files ([`schema`]); their text ([`record_line`]) and the SQL ([`scripts`]) are derived from it. Oracle
//! runs no program of this project, and this program does not connect to Oracle: see docs/oracle.md for the reasons.
//!
//! A reader never sees a partial file and can detect files of different snapshots: all are written under temporary names and synced;
//! then they are renamed. Between the first rename and the last a reader can open files of two snapshots. Then their snapshot_id
//! differs, or the record counts in hp_host.dat, which is renamed last, do not match.

mod record_line;
mod schema;
pub mod scripts;
pub mod survey_snapshot;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use clap::Args;
use hugepage_assess::row;
use hugepage_server::SafeDirectory;
use hugepage_server::safe_directory::NewFile;
use rustix::fs::{Gid, Mode, fchmod, fchown};
use serde::Deserialize;
use serde_json::Value;

use self::record_line::{header, line, seconds};
use self::schema::{DataFile, FILES, FORMAT_VERSION};
use crate::privileges;

/// Read and write for root, read for the group of the Oracle installation.
const DEFAULT_MODE: u32 = 0o640;
const LOCK_FILE: &str = ".hugepage-sidecar.lock";

/// Permissions of the files.
#[derive(Clone, Copy, Debug, Args)]
pub struct WriterOptions {
    /// Permissions of the files, octal [default: 640]
    #[arg(long, value_parser = file_mode)]
    mode: Option<u32>,
}

fn file_mode(text: &str) -> Result<u32> {
    let mode = u32::from_str_radix(text, 8)?;
    ensure!(
        mode & !0o664 == 0,
        "the files must not be executable, nor writable by others"
    );
    Ok(mode)
}

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
        let is_known = |name: &Cow<'_, str>| {
            FILES
                .iter()
                .flat_map(|file| &file.columns)
                .any(|one| one.name == *name)
        };
        ensure!(
            given
                .records
                .values()
                .flatten()
                .all(|record| record.keys().all(is_known)),
            "a column is unknown"
        );
        Ok(given)
    }

    /// Writes the files into `directory` and returns their snapshot_id. An error before the first rename leaves the old.
    pub fn write(&self, directory: &Path, options: &WriterOptions) -> Result<String> {
        let id = new_id();
        let files = self.files(&id);
        privileges::write(|| replace(directory, options, &files))?;
        Ok(id)
    }

    /// The text of one file, such as `hp_pool.dat`; `None` if there is no file of that name.
    pub fn text(&self, name: &str) -> Option<String> {
        self.files(&new_id())
            .into_iter()
            .find(|(file, _)| *file == name)
            .map(|(_, text)| text)
    }

    /// The name and the text of each file. `id`: that of the snapshot, in all records.
    fn files(&self, id: &str) -> Vec<(&'static str, String)> {
        let records = |file: &DataFile| {
            self.records
                .get(&file.function)
                .map_or(&[][..], Vec::as_slice)
        };
        let common = row! {
            format_version: FORMAT_VERSION,
            snapshot_id: id,
            snapshot_utc: seconds(self.taken_at),
            host_name: self.host_name,
        };
        let counts = FILES
            .iter()
            .map(|file| (Cow::from(&*file.count), records(file).len().into()));
        let common: FileRecord = common.into_iter().chain(counts).collect();
        let text = |file: &'static DataFile| {
            let value = |record: &FileRecord, name: &str| {
                common
                    .get(name)
                    .or(record.get(name))
                    .cloned()
                    .unwrap_or_default()
            };
            let lines = records(file)
                .iter()
                .map(|record| line(&file.columns, |name| value(record, name)));
            (
                &*file.file,
                header(&file.columns) + &lines.collect::<String>(),
            )
        };
        FILES.iter().map(text).collect()
    }
}

/// Nanoseconds since 1970 in hexadecimal: unique per snapshot of a host, 16 digits up to the year 2554.
fn new_id() -> String {
    let nanoseconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_nanos();
    format!("{:016x}", u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

/// Replaces files in the directory `path`, each with its name and its text, while no other process does. The directory is opened so
/// that other users cannot redirect this program, which runs as root, to other files.
fn replace(path: &Path, options: &WriterOptions, files: &[(&str, String)]) -> Result<()> {
    let directory = SafeDirectory::open_without_links(path)?;
    let locked = directory
        .open_lock(LOCK_FILE)
        .and_then(|file| file.lock().map(|()| file));
    let _lock = locked.with_context(|| format!("could not lock {}/{LOCK_FILE}", path.display()))?;
    let failed = |operation: &str, name: &str| {
        format!("could not {operation} {}", path.join(name).display())
    };
    let mut new = Vec::new();
    for (name, text) in files {
        // What was left by a writer that was killed.
        let temporary = format!(".{name}.new");
        let created = directory
            .remove(&*temporary)
            .and_then(|()| create(&directory, temporary, text, options));
        new.push((name, created.with_context(|| failed("write", name))?));
    }
    new.into_iter()
        .try_for_each(|(name, new)| new.put(*name).with_context(|| failed("replace", name)))
}

/// Creates the file `name` with `text` and syncs it.
fn create<'a>(
    directory: &'a SafeDirectory,
    name: String,
    text: &str,
    options: &WriterOptions,
) -> io::Result<NewFile<'a>> {
    let of_directory = Gid::from_raw(directory.metadata()?.gid());
    let mut new = directory.new_file(name, 0o600)?;
    new.file.write_all(text.as_bytes())?;
    // In this order: another user's mode only CAP_FOWNER can change.
    fchmod(
        &new.file,
        Mode::from_bits_truncate(options.mode.unwrap_or(DEFAULT_MODE)),
    )?;
    fchown(&new.file, None, Some(of_directory))?;
    new.file.sync_all()?;
    Ok(new)
}
