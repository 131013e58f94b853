//! The directory of the files, opened so that other users cannot redirect the writer, which runs as root, to other files.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use hugepage_server::SafeDirectory;
use hugepage_server::safe_directory::UnsafeDirectory;
use rustix::fs::{Gid, Mode, OFlags, Uid, fchmod, fchown};

/// Owner, group and mode of a file that Oracle reads.
#[derive(Clone, Copy, Debug)]
pub struct FilePermissions {
    /// The owner; `None` for the current user.
    pub owner: Option<Uid>,
    /// The group.
    pub group: Gid,
    /// The permissions.
    pub mode: Mode,
}

/// The open directory.
#[derive(Debug)]
pub struct OracleDirectory {
    path: PathBuf,
    directory: SafeDirectory,
    group: Gid,
}

impl OracleDirectory {
    /// Opens the absolute `path`. Oracle refuses a directory with a symbolic link in its path (KUP-03037).
    pub fn open(path: &Path) -> Result<Self> {
        let directory = SafeDirectory::open_without_links(path).map_err(|error| match error {
            UnsafeDirectory::Link(_) => {
                anyhow!("{error}; Oracle refuses symbolic links (KUP-03037): use the real path")
            }
            _ => error.into(),
        })?;
        let group = Gid::from_raw(directory.metadata()?.gid());
        Ok(Self { path: path.to_owned(), directory, group })
    }

    /// The group of the directory.
    pub const fn group(&self) -> Gid {
        self.group
    }

    /// Creates the file `name` with `text` and syncs it. An existing file or link of that name is removed, never written to.
    pub fn create(&self, name: &str, text: &str, access: FilePermissions) -> Result<()> {
        let write = || -> io::Result<()> {
            self.directory.remove(name)?;
            let mut file = self.directory.create_file(name, 0o600)?;
            file.write_all(text.as_bytes())?;
            // In this order: another user's mode only CAP_FOWNER can change.
            fchmod(&file, access.mode)?;
            fchown(&file, access.owner, Some(access.group))?;
            file.sync_all()
        };
        write().with_context(|| format!("could not write {}/{name}", self.path.display()))
    }

    /// Renames the file `from` to `to` atomically.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        let renamed = self.directory.rename(from, to);
        renamed.with_context(|| format!("could not rename {}/{from} to {to}", self.path.display()))
    }

    /// Removes the file `name` if it exists.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        self.directory.remove(name)
    }

    /// The text of `name`; `None` if the file does not exist.
    pub fn read(&self, name: &str) -> Result<Option<String>> {
        let mut text = String::new();
        let read =
            self.directory.open_file(name, OFlags::RDONLY, 0).and_then(|mut file| file.read_to_string(&mut text));
        match read {
            Ok(_) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            failed => failed.map(|_| None).with_context(|| format!("could not read {}/{name}", self.path.display())),
        }
    }

    /// Excludes other writers until the file is closed. Only the current user can open it.
    pub fn lock(&self, name: &str) -> Result<File> {
        let locked = self.directory.open_lock(name).and_then(|file| file.lock().map(|()| file));
        locked.with_context(|| format!("could not lock {}/{name}", self.path.display()))
    }

    /// Syncs the directory.
    pub fn sync(&self) -> Result<()> {
        self.directory.sync().with_context(|| format!("could not write {}", self.path.display()))
    }
}
