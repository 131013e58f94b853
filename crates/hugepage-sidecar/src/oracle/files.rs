//! The four files of a snapshot. A reader never sees a partial file and can detect files of different snapshots.
//!
//! All four files are written under temporary names and synced; then they are renamed. Between the first rename and the last
//! a reader can open files of two snapshots. Then their snapshot_id differs, or the record counts in hp_host.dat, which is
//! renamed last, do not match.

use std::fs::File;

use anyhow::Result;
use rustix::fs::Mode;

use crate::oracle::account::{Group, User};
use crate::oracle::columns::{FILES, columns};
use crate::oracle::directory::{FilePermissions, OracleDirectory};
use crate::oracle::record_line::{header, line};
use crate::oracle::snapshot::{FileContent, SnapshotContent};

/// Read and write for root, read for the group of the Oracle installation.
const DEFAULT_MODE: u32 = 0o640;
const LOCK_FILE: &str = ".hugepage-sidecar.lock";

/// Owner, group and mode of the files.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriterOptions {
    /// The owner; `None` for the current user.
    pub owner: Option<User>,
    /// The group; `None` for that of the directory.
    pub group: Option<Group>,
    /// The permissions; `None` for 0640.
    pub mode: Option<u32>,
}

/// Exclusive access to a directory.
#[derive(Debug)]
pub struct Writer {
    directory: OracleDirectory,
    access: FilePermissions,
    _lock: File,
}

impl Writer {
    /// Waits until no other writer has access.
    pub fn new(directory: OracleDirectory, options: &WriterOptions) -> Result<Self> {
        let access = FilePermissions {
            owner: options.owner,
            group: options.group.unwrap_or(directory.group()),
            mode: Mode::from_bits_truncate(options.mode.unwrap_or(DEFAULT_MODE)),
        };
        let lock = directory.lock(LOCK_FILE)?;
        Ok(Self { directory, access, _lock: lock })
    }

    /// Writes one snapshot and returns its snapshot_id. An error before the first rename leaves the old files.
    pub fn write(&self, content: &SnapshotContent) -> Result<String> {
        self.replace_all(&content.files.each_ref().map(|file| (file.definition.name(), text(file))))?;
        Ok(content.snapshot_id().to_owned())
    }

    /// Writes missing files with a header line only.
    pub fn prepare(&self) -> Result<()> {
        let mut missing = Vec::new();
        for file in FILES {
            if self.directory.read(&file.name())?.is_none() {
                missing.push((file.name(), header(columns(file))));
            }
        }
        self.replace_all(&missing)
    }

    fn replace_all(&self, files: &[(String, String)]) -> Result<()> {
        for (name, text) in files {
            if let Err(error) = self.directory.create(&temporary_name(name), text, self.access) {
                for (name, _) in files {
                    // Report the first error.
                    let _ = self.directory.remove(&temporary_name(name));
                }
                return Err(error);
            }
        }
        for (name, _) in files {
            self.directory.rename(&temporary_name(name), name)?;
        }
        self.directory.sync()
    }
}

/// The name of a file until it is complete.
fn temporary_name(name: &str) -> String {
    format!(".{name}.new")
}

/// The text of a file.
pub fn text(file: &FileContent) -> String {
    let records = file.records.iter().map(|values| line(columns(file.definition), values));
    std::iter::once(header(columns(file.definition))).chain(records).collect()
}
