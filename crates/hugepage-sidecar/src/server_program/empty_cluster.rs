//! A data directory without data, of which `postgres -C` reports the size of shared memory for any settings. It has a version
//! and a control file, which `pg_resetwal -f` writes; no configuration file is read.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use hugepage_kernel::Bytes;
use hugepage_start::errors;
use rustix::fs::{Gid, Uid, fchown};
use tempfile::TempDir;

use super::trust::{self, ProgramAccount};
use super::{ANSWER_TIMEOUT, child};
use crate::privileges;

/// Majors that report one page more than they need where the size is a multiple of the page size (`InitializeShmemGUCs`).
const LAST_MAJOR_WITH_ONE_TOO_MANY: u32 = 18;

/// Why a server tells no size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoSize {
    /// It refuses the settings: its own error.
    Refused(String),
    /// It was not asked, or its end says nothing about the settings.
    Unanswered(String),
}

impl NoSize {
    /// The error, or the reason.
    pub fn into_text(self) -> String {
        match self {
            Self::Refused(text) | Self::Unanswered(text) => text,
        }
    }
}

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
            true => match cluster.shared_memory(std::iter::empty()) {
                Ok(_) => Ok(cluster),
                Err(why) => Err(why.into_text()),
            },
            false => Err(format!("pg_resetwal failed: {}", output.stderr.lines().last().unwrap_or("no message"))),
        }
    }

    fn path(&self) -> Result<String, String> {
        let path = self.directory.as_ref().and_then(|directory| directory.path().to_str());
        path.map(str::to_owned).ok_or_else(|| "the directory for temporary files has no plain name".to_owned())
    }

    /// The size of shared memory with these settings, of which the last one of a name is effective.
    pub fn shared_memory<'a>(&self, settings: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Bytes, NoSize> {
        let path = self.path().map_err(NoSize::Unanswered)?;
        let mut arguments = vec!["-D".to_owned(), path.clone()];
        // Pages of 1 kB: the answer is the size itself.
        let own = [("config_file", "/dev/null"), ("ssl", "off"), ("huge_page_size", "1kB")];
        let settings = settings.chain(own).map(|(name, value)| format!("{name}={value}"));
        arguments.extend(settings.flat_map(|setting| ["-c".to_owned(), setting]));
        arguments.extend(["-C", "shared_memory_size_in_huge_pages"].map(str::to_owned));
        let output = child::run(&self.program, &arguments, self.account, ANSWER_TIMEOUT).map_err(NoSize::Unanswered)?;
        let too_many = u64::from(self.major <= LAST_MAJOR_WITH_ONE_TOO_MANY);
        match (output.is_success, output.stdout.trim().parse::<u64>()) {
            (true, Ok(counted)) => Ok(Bytes::from_kib(counted.saturating_sub(too_many))),
            (false, Err(_)) if is_refusal(&output.stderr, &path) => Err(NoSize::Refused(error_of(&output.stderr))),
            _ => Err(NoSize::Unanswered(error_of(&output.stderr))),
        }
    }
}

/// Whether the server ended because of its settings: not because of a moment, of this program's limits, or of the data
/// directory `own`.
fn is_refusal(stderr: &str, own: &str) -> bool {
    const OF_THE_ACCOUNT: [&str; 2] = ["Permission denied", "Operation not permitted"];
    // write_stderr begins with the name of the program where elog has a level.
    let has_error = ["FATAL:  ", "ERROR:  "].iter().any(|level| stderr.contains(level))
        || stderr.lines().last().is_some_and(|line| line.starts_with("postgres: "));
    let error = error_of(stderr);
    let is_of_check = |text: &&str| error.contains(text);
    has_error
        && !errors::are_of_the_moment(&error)
        && !OF_THE_ACCOUNT.iter().chain(&[own, "shared_memory_size_in_huge_pages"]).any(is_of_check)
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

    #[test]
    fn what_is_no_refusal() {
        for (stderr, is_one) in [
            ("2026-01-01 GMT [1] FATAL:  unrecognized configuration parameter \"a\"\n", true),
            ("LOG:  x\npostgres: a must be less than b\n", true),
            ("FATAL:  could not open file \"/tmp/own/global/pg_control\": Is a directory\n", false),
            ("FATAL:  could not access file \"a\": Permission denied\n", false),
            ("FATAL:  could not load library \"a\": failed to map segment from shared object\n", false),
            ("FATAL:  unrecognized configuration parameter \"shared_memory_size_in_huge_pages\"\n", false),
            ("Killed\n", false),
            ("", false),
        ] {
            assert_eq!(is_refusal(stderr, "/tmp/own"), is_one, "{stderr}");
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
        for (name, value) in
            [("max_connections", "x"), ("max_connections", "2"), ("nonesuch", "1"), ("wal_level", "minimal")]
        {
            let refused = size(&[(name, value)]).unwrap_err();
            assert!(matches!(&refused, NoSize::Refused(error) if error.contains(name)), "{refused:?}");
        }
        drop(cluster);
        assert!(!place.exists());
    }
}
