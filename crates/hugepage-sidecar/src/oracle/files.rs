//! The files of a snapshot. A reader never sees a partial file and can detect files of different snapshots.
//!
//! All files are written under temporary names and synced; then they are renamed. Between the first rename and the last
//! a reader can open files of two snapshots. Then their snapshot_id differs, or the record counts in hp_host.dat, which is
//! renamed last, do not match.

use std::fs::File;

use anyhow::{Result, ensure};
use clap::Args;
use rustix::fs::{Gid, Mode, Uid};

use crate::oracle::account;
use crate::oracle::columns::{FILES, columns};
use crate::oracle::directory::{FilePermissions, OracleDirectory};
use crate::oracle::record_line::{header, line};
use crate::oracle::snapshot::{FileContent, SnapshotContent};

/// Read and write for root, read for the group of the Oracle installation.
const DEFAULT_MODE: u32 = 0o640;
const LOCK_FILE: &str = ".hugepage-sidecar.lock";

/// Owner, group and permissions of the files.
#[derive(Clone, Copy, Debug, Args)]
pub struct WriterOptions {
    /// Owner of the files, a name or a number [default: the current user]
    #[arg(long, value_name = "USER", value_parser = account::user)]
    owner: Option<Uid>,
    /// Group of the files, a name or a number [default: the group of the directory]
    #[arg(long, value_name = "GROUP", value_parser = account::group)]
    group: Option<Gid>,
    /// Permissions of the files, octal [default: 640]
    #[arg(long, value_parser = file_mode)]
    mode: Option<u32>,
}

fn file_mode(text: &str) -> Result<u32> {
    let mode = u32::from_str_radix(text, 8)?;
    ensure!(mode & !0o664 == 0, "the files must not be executable, nor writable by others");
    Ok(mode)
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
