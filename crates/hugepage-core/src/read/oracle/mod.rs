//! What an Oracle instance shows to the operating system: the titles of its processes, oratab, parameter files, and the
//! alert log. No Oracle library and no connection is needed. The formats are those of Oracle's manuals and of published
//! logs.
//!
//! A file here can be of any kind: a log of a terabyte, a pipe, a directory that links to itself. Readers are bounded
//! in time and memory, and never wait for a file.

pub mod alert_log;
pub mod locate;
mod log_xml;
pub mod oratab;
pub mod parameters;
pub mod process;
mod sentences;
pub mod size;
mod spfile;
pub mod startup;
mod startup_parser;
pub mod timestamp;

pub use alert_log::last_start;
pub use locate::Search;
pub use parameters::Parameters;
pub use process::{OracleInstance, OracleKind, OracleProcess, OracleRole};
pub use startup::LastStart;
pub use startup_parser::START;
pub use timestamp::Timestamp;

use std::io::Read;

use crate::ReadError;
use crate::read::Root;

/// An oratab, init.ora or spfile that is longer is an error.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The whole of a file that is normally short.
fn read_bytes(root: &Root, path: &str) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    let file = root.open_regular(path)?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|source| root.error("read", path, source))?;
    match u64::try_from(bytes.len()) {
        Ok(..=MAX_FILE_BYTES) => Ok(bytes),
        _ => Err(root.content(path, format!("it is longer than {MAX_FILE_BYTES} bytes"))),
    }
}

/// The same as text; bytes that are not UTF-8 are replaced.
fn read_text(root: &Root, path: &str) -> Result<String, ReadError> {
    Ok(String::from_utf8_lossy(&read_bytes(root, path)?).into_owned())
}
