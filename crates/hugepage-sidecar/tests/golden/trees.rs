//! Trees of files that stand for a host, with a clock that does not depend on when they were made.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::builder::NOW;
use crate::snapshots::files;

/// A host, in a directory that has nothing else.
pub struct Tree {
    pub path: PathBuf,
    _above: tempfile::TempDir,
}

impl Tree {
    fn empty() -> Self {
        let above = tempfile::tempdir().unwrap();
        let path = above.path().join("host");
        fs::create_dir(&path).unwrap();
        Self {
            path,
            _above: above,
        }
    }

    /// What passes for a host, for calls that read none.
    pub fn bare() -> Self {
        let tree = Self::empty();
        fs::create_dir(tree.path.join("proc")).unwrap();
        tree
    }

    pub fn copy(of: &Path) -> Self {
        let tree = Self::empty();
        copy(of, &tree.path);
        tree
    }

    /// The tree that is in an archive.
    pub fn unpacked(archive: &Path) -> Self {
        let tree = Self::empty();
        let mut tar = Command::new("tar");
        tar.arg("-xf")
            .arg(archive)
            .args(["--no-same-owner", "-C"])
            .arg(&tree.path);
        assert!(
            tar.status().unwrap().success(),
            "could not unpack {}",
            archive.display()
        );
        tree
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path.join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Makes the backend that `/proc/self` is the postmaster of a server.
    pub fn add_server(&self) {
        copy(&self.path.join("proc/self"), &self.path.join("proc/1000"));
        self.write(
            "proc/1000/cmdline",
            "/usr/lib/postgresql/15/bin/postgres\0-D\0/data\0",
        );
        self.write(
            "proc/1000/stat",
            format!("1000 (postgres) S 1 {}100000 0 0\n", "0 ".repeat(17)),
        );
        self.write(
            "proc/1000/status",
            "Name:\tpostgres\nPPid:\t1\nUid:\t26\t26\t26\t26\nGid:\t26\t26\t26\t26\nVmPTE:\t120 kB\n",
        );
        self.write("data/PG_VERSION", "15\n");
        self.write("data/postgresql.conf", "shared_buffers = 1GB\n");
        symlink("/data", self.path.join("proc/1000/cwd")).unwrap();
    }

    /// Sets the time: that at which the tree was made if its README tells it.
    pub fn set_clock(&self) {
        for (path, text) in [
            ("proc/uptime", "900000.00 1000000.00\n"),
            ("proc/sys/kernel/hostname", "db1\n"),
            ("run/systemd/system/own.conf", ""),
        ] {
            if !self.path.join(path).exists() {
                self.write(path, text);
            }
        }
        let readme = fs::read_to_string(self.path.join("README")).unwrap_or_default();
        let told = readme
            .split_once(" at ")
            .and_then(|(_, rest)| humantime::parse_rfc3339(rest.split(' ').next()?).ok());
        let now = told.unwrap_or(SystemTime::UNIX_EPOCH + NOW);
        // A link may lead out of the tree.
        let is_plain = |file: &PathBuf| file.symlink_metadata().unwrap().is_file();
        for file in files(&self.path).into_iter().filter(is_plain) {
            // What is configured was so when the servers started.
            let written = if file.ends_with("proc/uptime") {
                now
            } else {
                SystemTime::UNIX_EPOCH
            };
            File::open(file).unwrap().set_modified(written).unwrap();
        }
    }
}

/// Copies a directory with its links.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => copy(&entry.path(), &target),
            kind if kind.is_symlink() => {
                symlink(fs::read_link(entry.path()).unwrap(), target).unwrap()
            }
            _ => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// The names in a directory.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = entries.collect();
    names.sort();
    names
}
