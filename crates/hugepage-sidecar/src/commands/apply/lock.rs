//! Allows one `apply` at a time: two would each count the pages that the kernel gave to the other.

use std::fs::{File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, bail};
use hugepage_server::SafeDirectory;
use hugepage_server::safe_directory::others_may_write;
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
        let (above, file) =
            open(directory).with_context(|| format!("could not open the lock file {}", path.display()))?;
        // Another user could hold the lock of their own file forever, and replace it in their own directory.
        let is_ours = |found: Metadata| found.uid() == rustix::process::geteuid().as_raw() && !others_may_write(&found);
        if !(is_ours(above.metadata()?) && is_ours(file.metadata()?)) {
            bail!("other users can write to {} or to the lock file in it: remove it", directory.display());
        }
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => bail!("another \"apply\" is running: it holds {}", path.display()),
            Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("could not lock {}", path.display())),
        }
    }
}

fn open(directory: &Path) -> io::Result<(SafeDirectory, File)> {
    let (parent, name) = SafeDirectory::open_above(directory, OFlags::PATH)?;
    let above = parent.create_directory(name, 0o755, OFlags::empty())?;
    let file = above.open_lock(NAME)?;
    Ok((above, file))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

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
        fs::remove_file(directory.join(NAME)).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(Lock::take(&directory).unwrap_err().to_string().contains("other users"));
    }
}
