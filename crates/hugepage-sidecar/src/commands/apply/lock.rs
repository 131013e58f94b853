//! Allows one `apply` at a time: two would each count the pages that the kernel gave to the other.

use std::fs::{File, TryLockError};
use std::path::Path;

use anyhow::{Context, bail};
use hugepage_server::SafeDirectory;
use rustix::fs::OFlags;

/// The directory of the lock file. Only root can create it, because /run is root's; every user can write to /run/lock.
pub const DIRECTORY: &str = "/run/hugepage-sidecar";
const NAME: &str = "apply.lock";

/// The lock, held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock in `directory`, which is created if it does not exist; an error if another process holds it.
    pub fn take(directory: &Path) -> anyhow::Result<Self> {
        let path = directory.join(NAME);
        // The directory is no other user's, who could hold the lock of a file there for ever.
        let opened = SafeDirectory::open_above(directory, OFlags::PATH)
            .and_then(|(parent, name)| parent.create_directory(name, 0o755, OFlags::empty())?.open_lock(NAME));
        let file = opened.with_context(|| format!("could not open the lock file {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => bail!("another \"apply\" is running: it holds {}", path.display()),
            Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("could not lock {}", path.display())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn lock_exclusively() {
        let above = tempfile::tempdir().unwrap();
        let directory = above.path().join("lock");
        let held = Lock::take(&directory).unwrap();
        assert!(Lock::take(&directory).unwrap_err().to_string().contains("is running"));
        drop(held);
        Lock::take(&directory).unwrap();
        symlink(&directory, above.path().join("link")).unwrap();
        assert!(Lock::take(&above.path().join("link")).is_err());
        fs::remove_file(directory.join(NAME)).unwrap();
        symlink("/dev/null", directory.join(NAME)).unwrap();
        assert!(Lock::take(&directory).is_err());
    }
}
