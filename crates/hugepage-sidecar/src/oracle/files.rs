//! The files of a snapshot. A reader never sees a partial file and can detect files of different snapshots.
//!
//! All files are written under temporary names and synced; then they are renamed. Between the first rename and the last
//! a reader can open files of two snapshots. Then their snapshot_id differs, or the record counts in hp_host.dat, which is
//! renamed last, do not match.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use hugepage_server::SafeDirectory;
use hugepage_server::safe_directory::NewFile;
use rustix::fs::{Gid, Mode, fchmod, fchown};

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
    ensure!(mode & !0o664 == 0, "the files must not be executable, nor writable by others");
    Ok(mode)
}

/// Exclusive access to a directory, opened so that other users cannot redirect this program, which runs as root, to other files.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    directory: SafeDirectory,
    options: WriterOptions,
    _lock: File,
}

impl Writer {
    /// Opens the absolute `path` and waits until no other writer has access.
    pub fn new(path: &Path, options: &WriterOptions) -> Result<Self> {
        let directory = SafeDirectory::open_without_links(path)?;
        let locked = directory.open_lock(LOCK_FILE).and_then(|file| file.lock().map(|()| file));
        let lock = locked.with_context(|| format!("could not lock {}/{LOCK_FILE}", path.display()))?;
        Ok(Self { path: path.to_owned(), directory, options: *options, _lock: lock })
    }

    /// Replaces files, each with its name and its text. An error before the first rename leaves the old ones.
    pub fn replace(&self, files: &[(&str, String)]) -> Result<()> {
        let mut new = Vec::new();
        for (name, text) in files {
            // What was left by a writer that was killed.
            let temporary = format!(".{name}.new");
            let created = self.directory.remove(&*temporary).and_then(|()| self.create(temporary, text));
            new.push((name, created.with_context(|| self.failed("write", name))?));
        }
        new.into_iter().try_for_each(|(name, new)| new.put(*name).with_context(|| self.failed("replace", name)))
    }

    /// Creates the file `name` with `text` and syncs it.
    fn create(&self, name: String, text: &str) -> io::Result<NewFile<'_>> {
        let of_directory = Gid::from_raw(self.directory.metadata()?.gid());
        let mut new = self.directory.new_file(name, 0o600)?;
        new.file.write_all(text.as_bytes())?;
        // In this order: another user's mode only CAP_FOWNER can change.
        fchmod(&new.file, Mode::from_bits_truncate(self.options.mode.unwrap_or(DEFAULT_MODE)))?;
        fchown(&new.file, None, Some(of_directory))?;
        new.file.sync_all()?;
        Ok(new)
    }

    fn failed(&self, operation: &str, name: &str) -> String {
        format!("could not {operation} {}", self.path.join(name).display())
    }
}
