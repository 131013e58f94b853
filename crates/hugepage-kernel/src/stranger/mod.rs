//! The one way to open a path that a database server's owner controls.

pub(crate) mod acl;
#[expect(clippy::disallowed_methods, reason = "strangers' paths, one step after the other")]
pub mod beneath;
pub mod instance_files;
mod last_change;
pub mod limit;
mod log_search;

pub use instance_files::InstanceFiles;
