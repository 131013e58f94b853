//! The history: one line of text for every start and every change of state of an instance, in one small file.
//!
//! The file needs no database and no server: it is written before the first connection and on standbys (docs/history.md).

pub mod file;
pub mod stored;

use std::io;
use std::path::PathBuf;

pub use file::HistoryFile;
pub use stored::History;

/// Why the history could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The operating system refused.
    #[error("could not {operation} history file \"{}\": {source}", path.display())]
    Io {
        /// The operation.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file is not a history file of this user.
    #[error("\"{}\" is {found}, not a history file of this server", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// What the file is instead: a noun phrase.
        found: &'static str,
    },
}
