//! What an Oracle Database on this host can read: four text files, and the SQL that makes views of them.
//!
//! [`columns`] says once what the files hold; the writer and every line of SQL come from there. [`write()`] is the
//! whole of the way out: [`snapshot`] (typed) to [`record_line`] (text) to [`files`] (renamed into place). Oracle never runs
//! anything of ours and nothing of ours talks to Oracle: see docs/oracle.md for why.

pub mod account;
pub mod columns;
mod directory;
pub mod files;
mod json;
pub mod json_snapshot;
pub mod names;
mod record_line;
pub mod schema;
pub mod scripts;
pub mod snapshot;
pub mod survey_snapshot;
mod text;
pub mod views;

use std::path::Path;

use anyhow::Result;

use self::directory::OracleDirectory;
use self::files::{Writer, WriterOptions};
use self::snapshot::OracleSnapshot;

/// Writes the files of one snapshot into `directory`, and returns its snapshot_id.
/// An error leaves the files of the snapshot before as they were.
pub fn write(directory: &Path, snapshot: &OracleSnapshot, options: &WriterOptions) -> Result<String> {
    Writer::new(OracleDirectory::open(directory)?, options)?.write(&snapshot.content())
}

/// The text of one of the files, `hp_pool.dat` say; `None` if there is no file of that name.
pub fn text(name: &str, snapshot: &OracleSnapshot) -> Option<String> {
    snapshot.content().files.iter().find(|file| file.definition.name() == name).map(files::text)
}

/// Writes files of a header line alone for those that are not there yet, so that the first SELECT works.
pub fn prepare(directory: &Path, options: &WriterOptions) -> Result<()> {
    Writer::new(OracleDirectory::open(directory)?, options)?.prepare()
}
