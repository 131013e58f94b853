//! A minimal data directory, from which the program calculates the size of shared memory: it needs a version and a control
//! file, refuses the data directory of a running server, and reads no other file of it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Fills the empty directory `path`: `version` is the text of PG_VERSION, `control` the content of global/pg_control. Returns
/// its files and directories, which only this user may enter, pg_control last.
#[expect(clippy::disallowed_methods, reason = "a new directory of the asker's")]
pub fn fill(path: &Path, version: &[u8], control: &[u8]) -> io::Result<Vec<File>> {
    let directory = |name: &str| {
        DirBuilder::new().mode(0o700).create(path.join(name))?;
        File::open(path.join(name))
    };
    let file = |name: &str, content: &[u8]| {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path.join(name))?;
        file.write_all(content)?;
        io::Result::Ok(file)
    };
    Ok(vec![
        file("PG_VERSION", version)?,
        directory("global")?,
        directory("pg_wal")?,
        File::open(path)?,
        file("global/pg_control", control)?,
    ])
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "a directory of the test")]

    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::fill;

    #[test]
    fn a_minimal_data_directory() {
        let path = std::env::temp_dir().join(format!("hugepage-start.{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        let filled = fill(&path, b"17\n", b"control").unwrap();
        let mode = |name: &str| fs::metadata(path.join(name)).unwrap().permissions().mode() & 0o777;
        let modes = ["PG_VERSION", "global", "pg_wal", "global/pg_control"].map(mode);
        let content =
            ["PG_VERSION", "global/pg_control"].map(|name| fs::read(path.join(name)).unwrap());
        let again = fill(&path, b"17\n", b"control").is_err();
        fs::remove_dir_all(&path).unwrap();
        assert_eq!((filled.len(), modes), (5, [0o600, 0o700, 0o700, 0o600]));
        assert_eq!(
            (content, again),
            ([b"17\n".to_vec(), b"control".to_vec()], true)
        );
    }
}
