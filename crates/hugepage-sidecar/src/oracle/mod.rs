//! Text files for Oracle Database on this host, and the SQL that defines views of them.
//!
//! sql/files.txt defines the files ([`schema`]); the writer and the SQL are derived from it. [`write()`] converts a [`snapshot`] to
//! text with [`record_line`] and replaces the [`files`]. Oracle runs no program of this project, and this program does not
//! connect to Oracle: see docs/oracle.md for the reasons.

pub mod files;
pub mod log_starts;
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

use self::files::{Writer, WriterOptions};
use self::snapshot::{OracleSnapshot, new_id};
use crate::privileges;

/// Writes the files of one snapshot into `directory` and returns its snapshot_id. An error before the first rename leaves the old.
pub fn write(directory: &Path, snapshot: &OracleSnapshot, options: &WriterOptions) -> Result<String> {
    let id = new_id();
    let files = snapshot.files(&id);
    privileges::write(|| Writer::new(directory, options)?.replace(&files))?;
    Ok(id)
}

/// The text of one file, such as `hp_pool.dat`; `None` if there is no file of that name.
pub fn text(name: &str, snapshot: &OracleSnapshot) -> Option<String> {
    snapshot.files(&new_id()).into_iter().find(|(file, _)| *file == name).map(|(_, text)| text)
}
