//! The one way to open a path that a database server's owner controls.

#[expect(
    clippy::disallowed_methods,
    reason = "strangers' paths, one step after the other"
)]
pub mod beneath;
pub mod instance_files;
pub mod limit;

pub use instance_files::InstanceFiles;
