//! Allows one `apply` at a time: two would each count the pages that the kernel gave to the other.

use std::fs::{DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use anyhow::{Context, bail};
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, openat};
use rustix::io::Errno;

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
        let is_ours =
            |found: &Metadata| found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o022 == 0;
        if !(is_ours(&above.metadata()?) && is_ours(&file.metadata()?)) {
            bail!("other users can write to {} or to the lock file in it: remove it", directory.display());
        }
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { _file: file }),
            Err(Errno::WOULDBLOCK) => bail!("another \"apply\" is running: it holds {}", path.display()),
            Err(error) => Err(error).with_context(|| format!("could not lock {}", path.display())),
        }
    }
}

/// Opens the directory, and the file in it without following a link and without truncating it.
fn open(directory: &Path) -> io::Result<(File, File)> {
    match DirBuilder::new().mode(0o755).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let above = openat(CWD, directory, flags, Mode::empty())?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(&above, NAME, flags, Mode::RUSR | Mode::WUSR)?;
    Ok((above.into(), file.into()))
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
