//! Allows one `apply` at a time: two would each count the pages that the kernel gave to the other.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use anyhow::{Context, bail};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

/// Every user can create files in this directory, so it is opened with care.
pub const PATH: &str = "/run/lock/hugepage-sidecar.lock";

/// The lock, held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock; an error if another process holds it.
    pub fn take(path: &Path) -> anyhow::Result<Self> {
        let file = open(path).with_context(|| format!("could not open the lock file {}", path.display()))?;
        // Another user could hold the lock of their own file forever.
        if file.metadata()?.uid() != rustix::process::geteuid().as_raw() {
            bail!("the lock file {} belongs to another user: remove it", path.display());
        }
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { _file: file }),
            Err(Errno::WOULDBLOCK) => bail!("another \"apply\" is running: it holds {}", path.display()),
            Err(error) => Err(error).with_context(|| format!("could not lock {}", path.display())),
        }
    }
}

/// Opens the file without following a link and without truncating it.
fn open(path: &Path) -> io::Result<File> {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(flags).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_exclusively() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let held = Lock::take(&path).unwrap();
        assert!(Lock::take(&path).unwrap_err().to_string().contains("is running"));
        drop(held);
        Lock::take(&path).unwrap();
        std::os::unix::fs::symlink(&path, directory.path().join("link")).unwrap();
        assert!(Lock::take(&directory.path().join("link")).is_err());
    }
}
