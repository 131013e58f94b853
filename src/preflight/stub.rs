//! A data directory with just enough in it for the server's program to add up shared memory.
//!
//! It lies among the server's own temporary files: base backups pass over them, and the postmaster removes them when it
//! starts, should a crash have left one.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use pgrx::pg_sys;

use super::child::leave_nothing_at_exit;

/// The server removes what begins like this (storage/fd.h, `PG_TEMP_FILE_PREFIX`).
const PREFIX: &str = "pgsql_tmp_hugepages.";

/// The directory, removed when this is dropped.
pub struct Stub(PathBuf);

impl Stub {
    /// Makes one for the server with this data directory.
    pub fn create(data: &Path) -> io::Result<Self> {
        let among = data.join("base/pgsql_tmp");
        // SAFETY: both are set when the process starts.
        #[allow(unsafe_code)]
        let (mode, pid) = unsafe { (pg_sys::data_directory_mode, pg_sys::MyProcPid) };
        match DirBuilder::new().mode(mode.unsigned_abs()).create(&among) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => remove_stale(&among, pid),
        }
        let stub = Self(among.join(format!("{PREFIX}{pid}")));
        leave_nothing_at_exit(&stub.0);
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

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        // What can't be removed goes with the next call or the next start.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes what processes that were killed have left, this one's own before a crash included.
fn remove_stale(among: &Path, own: i32) {
    for entry in fs::read_dir(among).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<i32>().ok());
        if pid.is_some_and(|pid| pid == own || !exists(pid)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn exists(pid: i32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}
