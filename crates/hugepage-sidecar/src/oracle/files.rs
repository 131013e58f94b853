//! The four files of a snapshot, written so that a reader never sees half of one and always notices a mixture.
//!
//! Each file is written whole under another name, brought to the disk, and renamed over the old one; only when all four
//! are on the disk is the first one renamed. Between the first rename and the last a reader can open files of two
//! snapshots: their snapshot_id differs, or hp_host.dat, the last one, counts other records than there are.

use std::fs::File;

use anyhow::Result;
use rustix::fs::Mode;

use crate::oracle::account::{Group, User};
use crate::oracle::columns::{FILES, columns};
use crate::oracle::directory::{FilePermissions, OracleDirectory};
use crate::oracle::record_line::{header, line};
use crate::oracle::snapshot::{FileContent, SnapshotContent};

/// root reads and writes, the group of Oracle's installation reads.
const DEFAULT_MODE: u32 = 0o640;
const LOCK_FILE: &str = ".hugepage-sidecar.lock";

/// Whose the files are.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriterOptions {
    /// Their owner; `None` for the user that writes them.
    pub owner: Option<User>,
    /// Their group; `None` for the directory's.
    pub group: Option<Group>,
    /// Their permissions; `None` for 0640.
    pub mode: Option<u32>,
}

/// A directory that no other writer writes to as long as this lives.
#[derive(Debug)]
pub struct Writer {
    directory: OracleDirectory,
    access: FilePermissions,
    _lock: File,
}

impl Writer {
    /// Waits for another writer to be ready.
    pub fn new(directory: OracleDirectory, options: &WriterOptions) -> Result<Self> {
        let access = FilePermissions {
            owner: options.owner,
            group: options.group.unwrap_or(directory.group()),
            mode: Mode::from_bits_truncate(options.mode.unwrap_or(DEFAULT_MODE)),
        };
        let lock = directory.lock(LOCK_FILE)?;
        Ok(Self { directory, access, _lock: lock })
    }

    /// Writes one snapshot, and returns its snapshot_id. An error before the first rename leaves all old files.
    pub fn write(&self, content: &SnapshotContent) -> Result<String> {
        self.replace_all(&content.files.each_ref().map(|file| (file.definition.name(), text(file))))?;
        Ok(content.snapshot_id().to_owned())
    }

    /// Writes a header line alone where there is no file.
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
                    // The error to tell of is the first one.
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

/// The name that a file has until it is whole.
fn temporary_name(name: &str) -> String {
    format!(".{name}.new")
}

/// The text of a file.
pub fn text(file: &FileContent) -> String {
    let records = file.records.iter().map(|values| line(columns(file.definition), values));
    std::iter::once(header(columns(file.definition))).chain(records).collect()
}
