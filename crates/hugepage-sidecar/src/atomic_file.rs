//! Writes a file atomically: a reader sees the old file or the new one, also after a crash or on a full disk.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Replaces the file at `path`. On an error the old file is unchanged and no temporary file remains.
pub fn write(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // Programs that read a whole directory ignore hidden files and unknown suffixes.
    let new = tempfile::Builder::new().prefix(".hugepage-sidecar-").tempfile_in(directory);
    // The original error names the temporary file, so that every message would differ.
    let new = new.map_err(|error| io::Error::from(error.kind()))?;
    new.as_file().write_all(content)?;
    new.as_file().set_permissions(Permissions::from_mode(mode))?;
    new.as_file().sync_all()?;
    new.persist(path).map_err(|error| error.error)?;
    // Write the new directory entry to the disk, too.
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs;

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
}
