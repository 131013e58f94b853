//! Where files are read: the live host or a tree of files, with what is remembered of it.

pub mod door;
pub mod failures;
#[expect(clippy::disallowed_methods, reason = "the kernel's files, by name")]
pub(crate) mod live_files;
pub mod root;
pub mod root_files;
pub(crate) mod short_file;

pub use root::{ROOT, Root};
