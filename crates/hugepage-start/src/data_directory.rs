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
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path.join(name))?;
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
