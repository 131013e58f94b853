//! A data directory without data, of which `postgres -C` reports the size of shared memory for any settings. It has a version
//! and a control file, which `pg_resetwal -f` writes; no configuration file is read.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hugepage_kernel::Bytes;
use hugepage_start::{StartAnswer, StartQuestion, data_directory};
use rustix::fs::{Gid, Uid, fchown};
use tempfile::TempDir;

use super::trust::{self, ProgramAccount};
use super::{ANSWER_TIMEOUT, child};
use crate::privileges;

/// The directory, and the server that answers for it.
#[derive(Debug)]
pub struct EmptyCluster {
    program: PathBuf,
    major: u32,
    account: ProgramAccount,
    /// Removed at the end.
    directory: Option<TempDir>,
    /// Its directories and files, which belong to the account: changed by descriptor, because the account could replace a name.
    given: Vec<File>,
}

impl EmptyCluster {
    /// For the server `program` of version `major`. As root it runs as a user that no other process has. The error says why there
    /// is none.
    pub fn new(program: &Path, major: u32, wal_segment_mb: u32) -> Result<Self, String> {
        let program = trust::check_program(program)?;
        let bin = program.parent().unwrap_or(Path::new("/"));
        // In a package the program is beside it; it is not checked by its name, so by its directory and owner.
        let reset = trust::check_file(&bin.join("pg_resetwal"))?;
        let account = ProgramAccount::without_privileges()?;
        let (directory, given) = privileges::write(|| create(major, account)).map_err(|error| {
            format!("could not create a data directory in {}: {error}", std::env::temp_dir().display())
        })?;
        let cluster = Self { program, major, account, directory: Some(directory), given };
        let wal_segment_size = format!("--wal-segsize={wal_segment_mb}").into();
        let arguments = ["-f".into(), "-D".into(), cluster.path().into(), wal_segment_size];
        let output = child::run(&reset, &arguments, account, ANSWER_TIMEOUT)?;
        // It goes on to clear pg_wal, where there is nothing; the control file is what counts.
        match cluster.given.last().and_then(|control| control.metadata().ok()).is_some_and(|found| found.len() > 0) {
            // What it refuses without a setting is not the fault of settings.
            true => match cluster.shared_memory(std::iter::empty()) {
                StartAnswer::Starts(_) => Ok(cluster),
                StartAnswer::Refuses(why) | StartAnswer::Unknown(why) => Err(why),
            },
            false => Err(format!(
                "pg_resetwal failed: {}",
                output.stderr.lines().last().unwrap_or(&output.status.to_string())
            )),
        }
    }

    fn path(&self) -> &Path {
        self.directory.as_ref().map_or(Path::new("/"), TempDir::path)
    }

    /// The size of shared memory with these settings, of which the last one of a name is effective.
    pub fn shared_memory<'a>(&self, settings: impl Iterator<Item = (&'a str, &'a str)>) -> StartAnswer<Bytes> {
        let no_file = [("config_file", "/dev/null")];
        let question = StartQuestion {
            major: self.major,
            arguments: &[],
            data: self.path(),
            settings: settings.chain(no_file).map(|(name, value)| (name, value.into())).collect(),
            stand_in: Some(self.path()),
            default_page_size: None,
        };
        question.ask(|arguments| child::ending(child::run(&self.program, arguments, self.account, ANSWER_TIMEOUT)))
    }
}

/// The directory, and what of it the account gets, the control file last.
fn create(major: u32, account: ProgramAccount) -> io::Result<(TempDir, Vec<File>)> {
    let directory =
        tempfile::Builder::new().prefix("hugepage-sidecar-").permissions(Permissions::from_mode(0o700)).tempdir()?;
    let given = data_directory::fill(directory.path(), format!("{major}\n").as_bytes(), &[])?;
    if rustix::process::geteuid().is_root() {
        for file in &given {
            fchown(file, Some(account.uid), Some(account.gid))?;
        }
    }
    Ok((directory, given))
}

impl Drop for EmptyCluster {
    fn drop(&mut self) {
        let (Some(directory), given) = (self.directory.take(), std::mem::take(&mut self.given)) else { return };
        // What is left behind is a few kilobytes in the directory for temporary files.
        let _ = privileges::write(|| {
            if rustix::process::geteuid().is_root() {
                for file in given.iter().filter(|file| file.metadata().is_ok_and(|found| found.is_dir())) {
                    fchown(file, Some(Uid::ROOT), Some(Gid::ROOT))?;
                }
            }
            fs::remove_dir_all(directory.keep())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a server is installed.
    #[test]
    fn ask_an_installed_server() {
        let installed =
            (15..30).find_map(|major| Some((major, super::super::packaged(major).find(|path| path.is_file())?)));
        let Some((major, program)) = installed else { return };
        let cluster = EmptyCluster::new(&program, major, 16).unwrap();
        let place = cluster.directory.as_ref().unwrap().path().to_owned();
        let size = |settings: &[(&'static str, &'static str)]| cluster.shared_memory(settings.iter().copied());
        let answers = (size(&[("shared_buffers", "1GB")]), size(&[("shared_buffers", "2GB")]));
        let (StartAnswer::Starts(small), StartAnswer::Starts(large)) = answers else { panic!("{answers:?}") };
        assert!(small > Bytes(1 << 30) && large.0 - small.0 > 1 << 30, "{small} {large}");
        for (name, value) in
            [("max_connections", "x"), ("max_connections", "2"), ("nonesuch", "1"), ("wal_level", "minimal")]
        {
            let refused = size(&[(name, value)]);
            assert!(matches!(&refused, StartAnswer::Refuses(error) if error.contains(name)), "{refused:?}");
        }
        drop(cluster);
        assert!(!place.exists());
    }
}
