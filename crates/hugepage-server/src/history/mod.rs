//! The history: one line of text for every start and every change of state of an instance, in one small file.
//!
//! The file needs no database and no server: it is written before the first connection and on standbys (docs/history.md).

pub mod boots;
pub mod file;
pub mod stored;

pub use file::HistoryFile;
pub use stored::History;
