//! What is not a plain file of ours is refused and left alone; a full disk costs the new record.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use hugepage_server::history::HistoryFile;
use tempfile::TempDir;

use super::{new_file, numbers, record};

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Every operation fails with a message that names the file and says `why`.
fn assert_refused(file: &HistoryFile, why: &str) {
    let errors = [
        file.records().unwrap_err(),
        file.last(|_| true).unwrap_err(),
        file.trim(1).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(
            error.to_string(),
            format!(
                "\"{}\" is {why}, not a history file of this server",
                file.path().display()
            )
        );
    }
    let error = file.append(&record(1)).unwrap_err().to_string();
    assert!(
        error.contains(&file.path().display().to_string()),
        "{error}"
    );
}

#[test]
fn symbolic_link() {
    let (directory, file) = new_file();
    let target = directory.path().join("target");
    fs::write(&target, record(0).to_line()).unwrap();
    symlink(&target, file.path()).unwrap();
    assert_refused(&file, "a symbolic link");
    assert_eq!(fs::read_to_string(&target).unwrap(), record(0).to_line());

    fs::remove_file(&target).unwrap();
    file.append(&record(1)).unwrap_err();
    assert!(
        !target.exists(),
        "nothing is made where a link points to nothing"
    );
}

#[test]
fn directory() {
    let (_directory, file) = new_file();
    fs::create_dir(file.path()).unwrap();
    assert_refused(&file, "not a plain file");
}

#[test]
fn named_pipe_stops_nobody() {
    let (_directory, file) = new_file();
    assert!(
        Command::new("mkfifo")
            .arg(file.path())
            .status()
            .unwrap()
            .success()
    );
    assert_refused(&file, "not a plain file");
}

#[test]
fn hard_link() {
    let (directory, file) = new_file();
    let other = directory.path().join("other");
    fs::write(&other, "of somebody else").unwrap();
    fs::hard_link(&other, file.path()).unwrap();
    assert_refused(&file, "a file with several hard links");
    assert_eq!(fs::read_to_string(&other).unwrap(), "of somebody else");
}

#[test]
fn huge_sparse_file_is_not_read() {
    let (_directory, file) = new_file();
    File::create(file.path()).unwrap().set_len(1 << 40).unwrap();
    assert_refused(&file, "longer than 256 MB");
}

#[test]
fn another_users_file() {
    if !is_root() {
        return;
    }
    let (_directory, file) = new_file();
    fs::write(file.path(), record(0).to_line()).unwrap();
    chown(file.path(), Some(12345), None).unwrap();
    assert_refused(&file, "another user's file");
}

#[test]
fn no_file_is_an_empty_history_and_no_directory_is_an_error() {
    let (directory, file) = new_file();
    assert_eq!(numbers(&file), [0; 0]);
    assert_eq!(file.last(|_| true).unwrap(), None);
    assert_eq!(file.trim(1).unwrap(), 0);
    assert!(!file.path().exists(), "reading makes nothing");
    let nowhere = HistoryFile::at(directory.path().join("missing/pg_hugepages.history"));
    let error = nowhere.append(&record(1)).unwrap_err().to_string();
    assert!(
        error.starts_with("could not create history file"),
        "{error}"
    );
}

#[test]
fn its_mode_is_that_of_the_directory() {
    // The server sets it by its data directory; here it is whatever the shell has.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o027));
    for (of_directory, of_file) in [(0o700, 0o600), (0o750, 0o640)] {
        let (directory, file) = new_file();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(of_directory)).unwrap();
        let mode = || fs::metadata(file.path()).unwrap().mode() & 0o777;
        (0..3).for_each(|number| file.append(&record(number)).unwrap());
        assert_eq!(mode(), of_file);
        file.trim(1).unwrap();
        assert_eq!(mode(), of_file);
    }
}

/// A small file system, unmounted at the end.
struct SmallDisk(TempDir);

impl SmallDisk {
    /// Mounts a small file system; `None` where this process may not, as in most containers.
    fn new() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k", "none"])
            .arg(directory.path())
            .output();
        let mount = mount.unwrap();
        if !mount.status.success() {
            eprintln!("left out: {}", String::from_utf8_lossy(&mount.stderr));
            return None;
        }
        Some(Self(directory))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A process that another test is starting has this one's open files until it runs its program.
        assert!(
            Command::new("umount")
                .arg("--lazy")
                .arg(self.0.path())
                .status()
                .unwrap()
                .success()
        );
    }
}

fn fill(path: &Path) {
    let mut zeroes = std::io::repeat(0);
    std::io::copy(&mut zeroes, &mut File::create(path).unwrap()).unwrap_err();
}

#[test]
fn full_disk_leaves_the_file_as_it_was() {
    let Some(disk) = SmallDisk::new() else { return };
    let file = HistoryFile::at(disk.path("pg_hugepages.history"));
    (0..10).for_each(|number| file.append(&record(number)).unwrap());
    let before = fs::read(file.path()).unwrap();
    fill(&disk.path("ballast"));

    // Longer than what is left of the file's last page, so that a part of it fits.
    let mut long = record(10);
    long.detail = Some("x".repeat(8192));
    let error = file.append(&long).unwrap_err().to_string();
    assert!(
        error.contains("could not write") && error.contains("No space left on device"),
        "{error}"
    );
    assert_eq!(fs::read(file.path()).unwrap(), before);
    let error = file.trim(1).unwrap_err().to_string();
    assert!(
        error.contains("could not rewrite") && error.contains("No space left on device"),
        "{error}"
    );
    assert_eq!(fs::read(file.path()).unwrap(), before);
    assert_eq!(
        fs::read_dir(disk.0.path()).unwrap().count(),
        2,
        "the attempt is cleaned up"
    );

    fs::remove_file(disk.path("ballast")).unwrap();
    file.append(&long).unwrap();
    assert_eq!(numbers(&file), (0..=10).collect::<Vec<_>>());
}
