//! The directory of the files, opened so that other users cannot redirect the writer, which runs as root, to other files.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, fchmod, fchown, fstat, fsync, openat, renameat, unlinkat};
use rustix::process::geteuid;

use crate::oracle::account::{Group, User};

/// Owner, group and mode of a file that Oracle reads.
#[derive(Clone, Copy, Debug)]
pub struct FilePermissions {
    /// The owner; `None` for the current user.
    pub owner: Option<User>,
    /// The group.
    pub group: Group,
    /// The permissions.
    pub mode: Mode,
}

/// The open directory.
#[derive(Debug)]
pub struct OracleDirectory {
    path: PathBuf,
    descriptor: OwnedFd,
    group: Group,
}

impl OracleDirectory {
    /// Opens the absolute `path`. Oracle refuses a directory with a symbolic link in its path (KUP-03037). Only root and
    /// the current user may be able to change any directory of the path.
    pub fn open(path: &Path) -> Result<Self> {
        ensure!(path.is_absolute(), "{}: the path must be absolute", path.display());
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut descriptor = openat(CWD, "/", flags, Mode::empty()).context("could not open /")?;
        let mut opened = PathBuf::from("/");
        let mut stat = fstat(&descriptor)?;
        for component in path.components() {
            let name = match component {
                Component::RootDir => continue,
                Component::Normal(name) => name,
                _ => bail!("{}: the path must not contain . or ..", path.display()),
            };
            check_parent(&stat).with_context(|| opened.display().to_string())?;
            opened.push(name);
            descriptor = openat(&descriptor, name, flags, Mode::empty()).map_err(|errno| match errno {
                rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR => anyhow::anyhow!(
                    "{}: a symbolic link, or not a directory; Oracle refuses symbolic links (KUP-03037): use the real path",
                    opened.display()
                ),
                errno => anyhow::anyhow!("could not open {}: {}", opened.display(), io::Error::from(errno)),
            })?;
            stat = fstat(&descriptor)?;
        }
        check_directory(&stat).with_context(|| path.display().to_string())?;
        Ok(Self { path: path.to_owned(), descriptor, group: Group(stat.st_gid) })
    }

    /// The group of the directory.
    pub const fn group(&self) -> Group {
        self.group
    }

    /// Creates the file `name` with `text` and syncs it. An existing file or link of that name is removed, never written to.
    pub fn create(&self, name: &str, text: &str, access: FilePermissions) -> Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let write = || -> io::Result<()> {
            self.remove(name)?;
            let descriptor = openat(&self.descriptor, name, flags, Mode::RUSR | Mode::WUSR)?;
            let mut file = File::from(descriptor);
            file.write_all(text.as_bytes())?;
            // In this order: another user's mode only CAP_FOWNER can change.
            fchmod(&file, access.mode)?;
            fchown(&file, access.owner.map(User::uid), Some(access.group.gid()))?;
            file.sync_all()
        };
        write().with_context(|| format!("could not write {}/{name}", self.path.display()))
    }

    /// Renames the file `from` to `to` atomically.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        renameat(&self.descriptor, from, &self.descriptor, to)
            .map_err(io::Error::from)
            .with_context(|| format!("could not rename {}/{from} to {to}", self.path.display()))
    }

    /// Removes the file `name` if it exists.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.descriptor, name, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The text of `name`; `None` if the file does not exist.
    pub fn read(&self, name: &str) -> Result<Option<String>> {
        let mut text = String::new();
        let mut read = || -> io::Result<bool> {
            match openat(&self.descriptor, name, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
                Ok(descriptor) => File::from(descriptor).read_to_string(&mut text).map(|_| true),
                Err(rustix::io::Errno::NOENT) => Ok(false),
                Err(errno) => Err(errno.into()),
            }
        };
        let exists = read().with_context(|| format!("could not read {}/{name}", self.path.display()))?;
        Ok(exists.then_some(text))
    }

    /// Excludes other writers until the file is closed. Only the current user can open it.
    pub fn lock(&self, name: &str) -> Result<File> {
        let lock = || -> io::Result<File> {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = File::from(openat(&self.descriptor, name, flags, Mode::RUSR | Mode::WUSR)?);
            file.lock()?;
            Ok(file)
        };
        lock().with_context(|| format!("could not lock {}/{name}", self.path.display()))
    }

    /// Syncs the directory.
    pub fn sync(&self) -> Result<()> {
        let synced = fsync(&self.descriptor).map_err(io::Error::from);
        synced.with_context(|| format!("could not write {}", self.path.display()))
    }
}

/// Checks the directory: only its owner may create and rename files.
fn check_directory(stat: &Stat) -> Result<()> {
    check_owner(stat)?;
    let mode = Mode::from_raw_mode(stat.st_mode);
    ensure!(
        !mode.intersects(Mode::WGRP | Mode::WOTH),
        "the group or other users may write to the directory: run chmod go-w"
    );
    Ok(())
}

/// Checks a directory of the path. A sticky directory such as /tmp is allowed.
fn check_parent(stat: &Stat) -> Result<()> {
    check_owner(stat)?;
    let mode = Mode::from_raw_mode(stat.st_mode);
    let open = mode.intersects(Mode::WGRP | Mode::WOTH) && !mode.contains(Mode::SVTX);
    ensure!(!open, "the group or other users may rename files in this directory: use a directory below /var/lib");
    Ok(())
}

fn check_owner(stat: &Stat) -> Result<()> {
    let owner = stat.st_uid;
    ensure!(owner == 0 || owner == geteuid().as_raw(), "the directory belongs to user {owner}, not to root");
    Ok(())
}
