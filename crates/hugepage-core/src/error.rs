//! Why something could not be read: always with the path and the operation.

use std::io;
use std::path::PathBuf;

/// A file of the kernel that did not give its answer.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The operating system refused; `operation` is a verb ("open", "read", "list").
    #[error("could not {operation} \"{}\": {}", path.display(), os_message(source))]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On which file.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// It was not opened, for a reason of this program's own: it is no plain file, or not the server's.
    #[error("refused to read \"{}\": {why}", path.display())]
    Refused {
        /// Which file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The file was read, and does not say what it should.
    #[error("could not understand \"{}\": {problem}", path.display())]
    Content {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

impl ReadError {
    /// Whether the file or directory simply is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// The system's text alone, without Rust's "(os error 2)", as PostgreSQL's %m prints it.
fn os_message(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
