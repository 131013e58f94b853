//! The files of a snapshot. A reader never sees a partial file and can detect files of different snapshots.
//!
//! All files are written under temporary names and synced; then they are renamed. Between the first rename and the last
//! a reader can open files of two snapshots. Then their snapshot_id differs, or the record counts in hp_host.dat, which is
//! renamed last, do not match.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;
use hugepage_server::SafeDirectory;
use hugepage_server::safe_directory::UnsafeDirectory;
use rustix::fs::{Gid, Mode, OFlags, Uid, fchmod, fchown};

use crate::oracle::account;
use crate::oracle::record_line::header;
use crate::oracle::schema::FILES;

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
        let directory = SafeDirectory::open_without_links(path).map_err(|error| match error {
            UnsafeDirectory::Link(_) => {
                anyhow!("{error}; Oracle refuses symbolic links (KUP-03037): use the real path")
            }
            _ => error.into(),
        })?;
        let locked = directory.open_lock(LOCK_FILE).and_then(|file| file.lock().map(|()| file));
        let lock = locked.with_context(|| format!("could not lock {}/{LOCK_FILE}", path.display()))?;
        Ok(Self { path: path.to_owned(), directory, options: *options, _lock: lock })
    }

    /// Writes missing files with a header line only.
    pub fn prepare(&self) -> Result<()> {
        let mut missing = Vec::new();
        for file in FILES.iter() {
            match self.directory.open_file(&*file.file, OFlags::PATH, 0) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    missing.push((&*file.file, header(&file.columns)));
                }
                Err(error) => return Err(error).with_context(|| self.failed("look for", &file.file)),
            }
        }
        self.replace(&missing)
    }

    /// Replaces files, each with its name and its text. An error before the first rename leaves the old ones.
    pub fn replace(&self, files: &[(&str, String)]) -> Result<()> {
        for (name, text) in files {
            let name = temporary_name(name);
            if let Err(error) = self.create(&name, text).with_context(|| self.failed("write", &name)) {
                for (name, _) in files {
                    // Report the first error.
                    let _ = self.directory.remove(&*temporary_name(name));
                }
                return Err(error);
            }
        }
        for (name, _) in files {
            let renamed = self.directory.rename(temporary_name(name), *name);
            renamed.with_context(|| self.failed("rename", &temporary_name(name)))?;
        }
        self.directory.sync().with_context(|| self.failed("write", ""))
    }

    /// Creates the file `name` with `text` and syncs it. An existing file or link of that name is removed, never written to.
    fn create(&self, name: &str, text: &str) -> io::Result<()> {
        let WriterOptions { owner, group, mode } = self.options;
        let of_directory = Gid::from_raw(self.directory.metadata()?.gid());
        self.directory.remove(name)?;
        let mut file = self.directory.create_file(name, 0o600)?;
        file.write_all(text.as_bytes())?;
        // In this order: another user's mode only CAP_FOWNER can change.
        fchmod(&file, Mode::from_bits_truncate(mode.unwrap_or(DEFAULT_MODE)))?;
        fchown(&file, owner, group.or(Some(of_directory)))?;
        file.sync_all()
    }

    fn failed(&self, operation: &str, name: &str) -> String {
        format!("could not {operation} {}", self.path.join(name).display())
    }
}

/// The name of a file until it is complete.
fn temporary_name(name: &str) -> String {
    format!(".{name}.new")
}
