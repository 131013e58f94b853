//! The one way to open a path that a database server's owner controls.

pub(crate) mod beneath;
pub mod instance_files;

pub use instance_files::InstanceFiles;
