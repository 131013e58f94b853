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

pub use cgroups::cgroup::{CgroupLimits, Hierarchy};
pub use error::ReadError;
pub use host::kernel_release::KernelRelease;
pub use mapping::maps::Mapping;
pub use mapping::memory_policy::MemoryPolicy;
pub use memory::kernel_limits::KernelLimits;
pub use memory::meminfo::Meminfo;
pub use memory::pool::Pool;
pub use next_boot::{BootLook, NextBoot, PoolAtBoot};
pub use notes::Notes;
pub use postgresql::postgresql_conf::Configuration;
pub use proc::rlimit::Rlimit;
pub use source::root::{found_if_there, if_there};
pub use source::root_files::{RootEntry, RootFiles};
pub use source::{ROOT, Root};
pub use stranger::{InstanceFiles, limit};
pub use units::{Bytes, PageSize, Pages};
