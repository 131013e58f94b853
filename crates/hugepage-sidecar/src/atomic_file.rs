//! Writes a file atomically: a reader sees the old file or the new one, also after a crash or on a full disk.

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use hugepage_server::SafeDirectory;
use rustix::fs::OFlags;

use crate::privileges;

/// The suffix of temporary files: programs that read a whole directory ignore hidden files and unknown suffixes.
const TEMPORARY: &str = ".hugepage-sidecar";

/// Replaces the file at `path`. On an error the old file is unchanged and no temporary file remains. Replaces regular files alone.
pub fn write(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    privileges::write(|| {
        // Since the start the directory may have become another user's.
        privileges::refusal_of_file(path).map_or(Ok(()), |why| Err(io::Error::other(why)))?;
        replace(path, content, mode)
    })
}

fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let (directory, name) = SafeDirectory::open_above(path, OFlags::empty())?;
    match directory.open_file(name, OFlags::PATH, 0).and_then(|found| found.metadata()) {
        Ok(found) if !found.is_file() => {
            return Err(io::Error::other("it is not a regular file, and is not replaced"));
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let new = directory.temporary_file(TEMPORARY)?;
    (&new.file).write_all(content)?;
    new.file.set_permissions(Permissions::from_mode(mode))?;
    new.put(name)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, Mode};

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
