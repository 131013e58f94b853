//! Writes a file atomically: a reader sees the old file or the new one, also after a crash or on a full disk.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fsync, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use crate::privileges;

/// Replaces the file at `path`. On an error the old file is unchanged and no temporary file remains. Replaces no device,
/// link, pipe or directory.
pub fn write(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    privileges::write(|| replace(path, content, mode))
}

fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let name = path.file_name().ok_or(Errno::ISDIR)?;
    // All steps are in this directory, even if another one gets its name meanwhile.
    let directory = openat(CWD, directory, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    match statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile => {
            return Err(io::Error::other("it is not a regular file, and is not replaced"));
        }
        Ok(_) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let new = Temporary::create(&directory)?;
    (&new.file).write_all(content)?;
    new.file.set_permissions(Permissions::from_mode(mode))?;
    new.file.sync_all()?;
    renameat(&directory, &new.name, &directory, name)?;
    // Write the new directory entry to the disk, too.
    fsync(&directory)?;
    Ok(())
}

/// A file that is removed unless it was renamed.
struct Temporary<'a> {
    directory: &'a std::os::fd::OwnedFd,
    name: String,
    file: File,
}

impl<'a> Temporary<'a> {
    fn create(directory: &'a std::os::fd::OwnedFd) -> io::Result<Self> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for attempt in 0..100 {
            // Programs that read a whole directory ignore hidden files and unknown suffixes.
            let name = format!(".hugepage-sidecar-{}-{attempt}", std::process::id());
            match openat(directory, &name, flags, Mode::RUSR | Mode::WUSR) {
                Ok(file) => return Ok(Self { directory, name, file: file.into() }),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::EXIST.into())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        let _ = unlinkat(self.directory, &self.name, AtFlags::empty());
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn replace_a_file_or_leave_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        for content in ["first\n", "second\n"] {
            write(&path, content.as_bytes(), 0o644).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        // A directory cannot be replaced by a file.
        let taken = directory.path().join("taken");
        fs::create_dir(&taken).unwrap();
        assert!(write(&taken, b"x", 0o644).is_err());
        assert!(write(&directory.path().join("none/file"), b"x", 0o644).is_err());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "no temporary file remains");
    }

    #[test]
    fn replace_nothing_but_a_regular_file() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "old").unwrap();
        symlink(&file, &link).unwrap();
        let pipe = directory.path().join("pipe");
        rustix::fs::mkfifoat(CWD, &pipe, Mode::RUSR).unwrap();
        for path in [&link, &pipe, Path::new("/dev/null")] {
            let error = write(path, b"x", 0o644).unwrap_err().to_string();
            assert!(error.contains("not a regular file"), "{error}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}
