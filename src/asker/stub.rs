//! A minimal data directory, from which the server's program calculates the size of shared memory.
//!
//! The directory is created among the server's temporary files, which base backups skip and the postmaster removes when it starts.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use hugepage_start::data_directory;
use pgrx::pg_sys;

use super::child::remove_at_exit;
use crate::server;

/// The server removes files and directories with this prefix (storage/fd.h, `PG_TEMP_FILE_PREFIX`).
const PREFIX: &str = "pgsql_tmp_hugepages.";

/// The directory; removed on drop.
pub struct Stub(PathBuf);

impl Stub {
    /// The place of this process's stub in `parent`, the directory of the server's temporary files, which is created if it does not exist.
    pub fn new(parent: &Path) -> io::Result<Self> {
        // SAFETY: set when the server starts.
        #[allow(unsafe_code)]
        let mode = unsafe { pg_sys::data_directory_mode };
        match DirBuilder::new().mode(mode.unsigned_abs()).create(parent) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let path = parent.join(format!("{PREFIX}{}", server::own_pid()));
        remove_at_exit(&path);
        Ok(Self(path))
    }

    /// Creates the stub anew for the server with this data directory; in a child, for a file of it may not answer.
    pub fn create(&self, data: &Path) -> io::Result<()> {
        match fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        DirBuilder::new().mode(0o700).create(&self.0)?;
        let read = |name: &str| fs::read(data.join(name));
        data_directory::fill(&self.0, &read("PG_VERSION")?, &read("global/pg_control")?)?;
        match fs::copy(
            data.join("postgresql.auto.conf"),
            self.0.join("postgresql.auto.conf"),
        ) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        // If this fails, the next start removes it.
        let _ = fs::remove_dir_all(&self.0);
    }
}
