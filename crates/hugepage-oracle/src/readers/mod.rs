//! What an Oracle instance shows to the operating system: the titles of its processes, oratab, parameter files, and the alert log. No
//! Oracle library and no connection is needed. The formats are those of Oracle's manuals and of published logs.
//!
//! A file here can be of any kind, also a log of a terabyte: readers are bounded in time and memory, and never wait for a file.

pub mod alert_log;
pub mod locate;
pub mod oratab;
pub mod parameters;
pub mod process;
pub mod startup;
mod startup_parser;
pub mod timestamp;
pub(crate) mod words;

pub use alert_log::last_start;
pub use locate::Search;
pub use process::{OracleInstance, OracleProcess};
pub use startup_parser::START;
