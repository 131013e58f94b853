//! The one way to open a path that a database server's owner controls.

pub(crate) mod beneath;
pub mod instance_files;
mod last_change;
pub mod limit;

pub use instance_files::InstanceFiles;
