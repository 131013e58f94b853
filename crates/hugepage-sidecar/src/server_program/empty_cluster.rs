//! A data directory without data, of which `postgres -C` reports the size of shared memory for any settings. It has a version
//! and a control file, which `pg_resetwal -f` writes; no configuration file is read.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use hugepage_core::Bytes;
use rustix::fs::{Gid, Uid, fchown};
use tempfile::TempDir;

use super::trust::{self, ProgramAccount};
use super::{ANSWER_TIMEOUT, child};
use crate::privileges;

/// Majors that report one page more than they need where the size is a multiple of the page size (`InitializeShmemGUCs`).
const LAST_MAJOR_WITH_ONE_TOO_MANY: u32 = 18;

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
    /// For the server `program` of version `major`. As root it runs as nobody. The error says why there is none.
    pub fn new(program: &Path, major: u32, wal_segment_mb: Option<u32>) -> Result<Self, String> {
        let account = ProgramAccount::without_privileges()?;
        let program = trust::check_program(program, account)?;
        let bin = program.parent().unwrap_or(Path::new("/"));
        // In a package the program is beside it; it is not checked by its name, so by its directory and owner.
        let reset = trust::check_file(&bin.join("pg_resetwal"), account)?;
        let (directory, given) = privileges::write(|| create(major, account)).map_err(|error| {
            format!("could not create a data directory in {}: {error}", std::env::temp_dir().display())
        })?;
        let cluster = Self { program, major, account, directory: Some(directory), given };
        let mut arguments = vec!["-f".to_owned(), "-D".to_owned(), cluster.path()?];
        arguments.extend(wal_segment_mb.map(|size| format!("--wal-segsize={size}")));
        let output = child::run(&reset, &arguments, account, ANSWER_TIMEOUT)?;
        // It goes on to clear pg_wal, where there is nothing; the control file is what counts.
        match cluster.given.last().and_then(|control| control.metadata().ok()).is_some_and(|found| found.len() > 0) {
            // What it refuses without a setting is not the fault of settings.
            true => cluster.shared_memory(std::iter::empty()).map(|_| cluster),
            false => Err(format!("pg_resetwal failed: {}", output.stderr.lines().last().unwrap_or("no message"))),
        }
    }

    fn path(&self) -> Result<String, String> {
        let path = self.directory.as_ref().and_then(|directory| directory.path().to_str());
        path.map(str::to_owned).ok_or_else(|| "the directory for temporary files has no plain name".to_owned())
    }

    /// The size of shared memory with these settings. The error is the server's own, or why it did not answer.
    pub fn shared_memory<'a>(&self, settings: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Bytes, String> {
        let mut arguments = vec!["-D".to_owned(), self.path()?];
        // Pages of 1 kB: the answer is the size itself.
        let own = [("config_file", "/dev/null"), ("ssl", "off"), ("huge_page_size", "1kB")];
        let settings = settings.chain(own).map(|(name, value)| format!("{name}={value}"));
        arguments.extend(settings.flat_map(|setting| ["-c".to_owned(), setting]));
        arguments.extend(["-C", "shared_memory_size_in_huge_pages"].map(str::to_owned));
        let output = child::run(&self.program, &arguments, self.account, ANSWER_TIMEOUT)?;
        let too_many = u64::from(self.major <= LAST_MAJOR_WITH_ONE_TOO_MANY);
        match (output.is_success, output.stdout.trim().parse::<u64>()) {
            (true, Ok(counted)) => Ok(Bytes::from_kib(counted.saturating_sub(too_many))),
            _ => Err(error_of(&output.stderr)),
        }
    }
}

/// The server's message: the line of the error, with its detail.
fn error_of(stderr: &str) -> String {
    let after = |level: &str| stderr.lines().find_map(|line| Some(line.split_once(level)?.1.trim().to_owned()));
    let message = after("FATAL:").or_else(|| after("ERROR:")).or_else(|| stderr.lines().last().map(str::to_owned));
    let message = message.unwrap_or_else(|| "no message".to_owned());
    match after("DETAIL:") {
        Some(detail) => format!("{message}: {detail}"),
        None => message,
    }
}

/// The directory, and what of it the account gets, the control file last.
fn create(major: u32, account: ProgramAccount) -> io::Result<(TempDir, Vec<File>)> {
    let directory =
        tempfile::Builder::new().prefix("hugepage-lint-").permissions(Permissions::from_mode(0o700)).tempdir()?;
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(text.as_bytes())?;
        io::Result::Ok(file)
    };
    let mut given = vec![file("PG_VERSION", &format!("{major}\n"))?];
    for name in ["global", "pg_wal"] {
        DirBuilder::new().mode(0o700).create(directory.path().join(name))?;
        given.push(File::open(directory.path().join(name))?);
    }
    given.push(File::open(directory.path())?);
    given.push(file("global/pg_control", "")?);
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

    #[test]
    fn the_servers_own_words() {
        for (stderr, message) in [
            ("2026-01-01 GMT [1] LOG:  x\n2026-01-01 GMT [1] FATAL:  no \"a\"\n", "no \"a\""),
            ("FATAL:  a\nDETAIL:  b\n", "a: b"),
            ("odd\n", "odd"),
            ("", "no message"),
        ] {
            assert_eq!(error_of(stderr), message);
        }
    }

    /// Where a server is installed.
    #[test]
    fn ask_an_installed_server() {
        let installed =
            (15..30).find_map(|major| Some((major, super::super::packaged(major).find(|path| path.is_file())?)));
        let Some((major, program)) = installed else { return };
        let cluster = EmptyCluster::new(&program, major, None).unwrap();
        let place = cluster.directory.as_ref().unwrap().path().to_owned();
        let size = |settings: &[(&'static str, &'static str)]| cluster.shared_memory(settings.iter().copied());
        let (small, large) = (size(&[("shared_buffers", "1GB")]).unwrap(), size(&[("shared_buffers", "2GB")]).unwrap());
        assert!(small > Bytes(1 << 30) && large.0 - small.0 > 1 << 30, "{small} {large}");
        assert!(size(&[("max_connections", "x")]).unwrap_err().contains("max_connections"));
        drop(cluster);
        assert!(!place.exists());
    }
}
