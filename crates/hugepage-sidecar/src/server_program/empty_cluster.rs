//! A data directory without data, of which `postgres -C` reports the size of shared memory for any settings. It has a version
//! and a control file, which `pg_resetwal -f` writes; no configuration file is read.

use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hugepage_kernel::Bytes;
use hugepage_start::{StartAnswer, StartQuestion, data_directory};
use rustix::process::geteuid;
use tempfile::TempDir;

use super::{ANSWER_TIMEOUT, check, child};

/// How the name of a directory begins.
const PREFIX: &str = "hugepage-sidecar-";
/// Longer than any reader lives.
const LEFT: Duration = Duration::from_secs(600);

/// The directory, and the server that answers for it.
#[derive(Debug)]
pub struct EmptyCluster {
    program: PathBuf,
    major: u32,
    /// Removed at the end.
    directory: TempDir,
}

impl EmptyCluster {
    /// For the server `program` of version `major`. The error says why there is none.
    pub fn new(program: &Path, major: u32, wal_segment_mb: u32) -> Result<Self, String> {
        let reset = check(&program.with_file_name("pg_resetwal"))?;
        let (directory, control) = create(major).map_err(|error| {
            format!("could not create a data directory in {}: {error}", std::env::temp_dir().display())
        })?;
        let cluster = Self { program: program.to_owned(), major, directory };
        let wal_segment_size = format!("--wal-segsize={wal_segment_mb}").into();
        let arguments = ["-f".into(), "-D".into(), cluster.directory.path().into(), wal_segment_size];
        let output = child::run(&reset, &arguments, ANSWER_TIMEOUT)?;
        // It goes on to clear pg_wal, where there is nothing; the control file is what counts.
        match control.metadata().is_ok_and(|found| found.len() > 0) {
            // What it refuses without a setting is not the fault of settings.
            true => match cluster.shared_memory(std::iter::empty()) {
                StartAnswer::Starts(_) => Ok(cluster),
                StartAnswer::Refuses(why) | StartAnswer::Unknown(why) => Err(why),
            },
            false => Err(format!(
                "pg_resetwal failed: {}",
                String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or(&output.status.to_string())
            )),
        }
    }

    /// The size of shared memory with these settings, of which the last one of a name is effective.
    pub fn shared_memory<'a>(&self, settings: impl Iterator<Item = (&'a str, &'a str)>) -> StartAnswer<Bytes> {
        let no_file = [("config_file", "/dev/null")];
        let question = StartQuestion {
            major: self.major,
            arguments: &[],
            data: self.directory.path(),
            settings: settings.chain(no_file).map(|(name, value)| (name, value.into())).collect(),
            stand_in: Some(self.directory.path()),
            default_page_size: None,
        };
        question.ask(|arguments| child::ending(child::run(&self.program, arguments, ANSWER_TIMEOUT)))
    }
}

/// The directory, and its control file.
fn create(major: u32) -> io::Result<(TempDir, File)> {
    remove_left(&std::env::temp_dir());
    let directory = tempfile::Builder::new().prefix(PREFIX).permissions(Permissions::from_mode(0o700)).tempdir()?;
    let mut made = data_directory::fill(directory.path(), format!("{major}\n").as_bytes(), &[])?;
    Ok((directory, made.pop().ok_or(io::ErrorKind::NotFound)?))
}

/// Removes from `temporary` what readers of this user had that were killed.
#[expect(clippy::disallowed_methods, reason = "what this program has made")]
fn remove_left(temporary: &Path) {
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        let is_left = |found: Metadata| {
            let age = found.modified().ok().and_then(|at| at.elapsed().ok());
            found.is_dir() && found.uid() == geteuid().as_raw() && age.is_some_and(|age| age > LEFT)
        };
        // Not that of a link.
        if entry.file_name().to_string_lossy().starts_with(PREFIX) && entry.metadata().is_ok_and(is_left) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_reader_left_is_removed() {
        let place = tempfile::tempdir().unwrap();
        for (name, age) in [("left", LEFT * 2), ("in_use", LEFT / 2)] {
            let directory = place.path().join(format!("{PREFIX}{name}"));
            fs::create_dir_all(directory.join("global")).unwrap();
            let then = std::time::SystemTime::now() - age;
            File::open(directory).unwrap().set_modified(then).unwrap();
        }
        std::os::unix::fs::symlink("/", place.path().join(format!("{PREFIX}link"))).unwrap();
        remove_left(place.path());
        let mut names: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [format!("{PREFIX}in_use"), format!("{PREFIX}link")].map(std::ffi::OsString::from));
    }

    /// Where a server is installed.
    #[test]
    fn ask_an_installed_server() {
        let installed =
            (15..30).find_map(|major| Some((major, super::super::packaged(major).find(|path| path.is_file())?)));
        let Some((major, program)) = installed else { return };
        if rustix::process::geteuid().is_root() {
            // Its programs refuse root; the scenarios ask it as its user.
            return;
        }
        let cluster = EmptyCluster::new(&program, major, 16).unwrap();
        let place = cluster.directory.path().to_owned();
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
