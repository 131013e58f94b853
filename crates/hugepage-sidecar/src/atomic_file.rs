//! Writing a file so that whoever reads it sees the old one or the new one, also after a crash or on a full disk.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Gives `path` this content and mode; if that fails, it is as it was and nothing is left beside it.
pub fn write(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // A name that begins with a dot and does not end as the file's own: those who read whole directories pass it over.
    let new = tempfile::Builder::new().prefix(".hugepage-sidecar-").tempfile_in(directory);
    // Its errors name the new file, and so are never the same twice.
    let new = new.map_err(|error| io::Error::from(error.kind()))?;
    new.as_file().write_all(content)?;
    new.as_file().set_permissions(Permissions::from_mode(mode))?;
    new.as_file().sync_all()?;
    new.persist(path).map_err(|error| error.error)?;
    // The new name, too, has to be on the disk.
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
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
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "nothing is left beside them");
    }
}
