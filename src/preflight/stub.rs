//! A minimal data directory, from which the server's program calculates the size of shared memory.
//!
//! It is created among the server's temporary files, which base backups skip and the postmaster removes when it starts.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use pgrx::pg_sys;

use super::child::clean_up_at_exit;

/// The server removes files and directories with this prefix (storage/fd.h, `PG_TEMP_FILE_PREFIX`).
pub const STUB_PREFIX: &str = "pgsql_tmp_hugepages.";

/// The directory of the server's temporary files, created if it does not exist.
pub fn parent(data: &Path) -> io::Result<PathBuf> {
    let parent = data.join("base/pgsql_tmp");
    // SAFETY: set when the server starts.
    #[allow(unsafe_code)]
    let mode = unsafe { pg_sys::data_directory_mode };
    match DirBuilder::new().mode(mode.unsigned_abs()).create(&parent) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(parent),
    }
}

/// The directory; removed on drop.
pub struct Stub(PathBuf);

impl Stub {
    /// Creates one for the server with this data directory, in `parent` from [`parent`].
    pub fn create(data: &Path, parent: &Path) -> io::Result<Self> {
        // SAFETY: set when the process starts.
        #[allow(unsafe_code)]
        let pid = unsafe { pg_sys::MyProcPid };
        remove_stale(parent, pid);
        let stub = Self(parent.join(format!("{STUB_PREFIX}{pid}")));
        clean_up_at_exit(&stub.0);
        for directory in [stub.path(), &stub.0.join("global")] {
            DirBuilder::new().mode(0o700).create(directory)?;
        }
        for file in ["PG_VERSION", "global/pg_control"] {
            fs::copy(data.join(file), stub.0.join(file))?;
        }
        match fs::copy(data.join("postgresql.auto.conf"), stub.0.join("postgresql.auto.conf")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(stub),
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        // If this fails, the next call or the next start removes it.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes the stubs of processes that no longer exist, and of an earlier process with this pid.
fn remove_stale(parent: &Path, own: i32) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(STUB_PREFIX)?.parse::<i32>().ok());
        if pid.is_some_and(|pid| pid == own || !exists(pid)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// By number, whether or not /proc shows it.
fn exists(pid: i32) -> bool {
    // SAFETY: no pointer, and no signal is sent.
    #[allow(unsafe_code)]
    let result = unsafe { libc::kill(pid, 0) };
    result == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}
