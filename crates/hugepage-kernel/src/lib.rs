//! Reads what Linux and PostgreSQL keep in files: one file format in each module, and no decisions.
//!
//! A reader takes a [`Root`], the live host or a tree of files, and never the name of a file alone. A field that the running
//! kernel does not have is `None`; what could not be read is a [`ReadError`] with its path, never zero. Files of database
//! servers, whose owners are strangers, are opened by [`InstanceFiles`] and in no other way.
//!
//! ```
//! use hugepage_kernel::memory::meminfo::Meminfo;
//! use hugepage_kernel::{ReadError, Root};
//!
//! let meminfo = Meminfo::read(&Root::live())?;
//! assert!(meminfo.mem_total.is_some());
//! # Ok::<(), ReadError>(())
//! ```

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod cgroups;
pub mod error;
pub mod fields;
pub mod host;
pub mod mapping;
pub mod memory;
pub mod next_boot;
pub mod notes;
pub mod postgresql;
pub mod proc;
pub mod source;
pub mod stranger;
pub mod units;

pub use error::ReadError;
pub use notes::Notes;
pub use source::Root;
pub use stranger::InstanceFiles;
pub use units::{Bytes, PageSize, Pages};
