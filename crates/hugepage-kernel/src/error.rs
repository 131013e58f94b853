//! Why a file could not be read, always with the path and the operation.

use std::io;
use std::path::PathBuf;

/// A file that could not be read or parsed.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The operating system refused; `operation` is a verb ("open", "read", "list").
    #[error("could not {operation} \"{}\": {}", path.display(), os_message(source))]
    Io {
        /// The operation.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// The program does not open it, whoever runs it: it is not a plain file, or the kernel's.
    #[error("refused to read \"{}\": {why}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The file was read, but its content is not valid.
    #[error("could not understand \"{}\": {problem}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The fault in its content.
        problem: String,
    },
}

impl ReadError {
    /// Whether the file or directory does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// The system's text alone, without Rust's "(os error 2)", as PostgreSQL's %m prints it.
fn os_message(error: &io::Error) -> String {
    error
        .to_string()
        .split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned()
}
