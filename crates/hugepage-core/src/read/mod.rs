//! Readers: each module parses one file format, and opens the file below an injected [`Root`].
//!
//! Readers decide nothing. A field that the running kernel does not have is `None`.

pub mod access_again;
pub mod access_log;
pub mod accounts;
mod auxv;
mod beneath;
pub mod boot;
mod boot_loader;
pub mod boot_writers;
pub mod buddyinfo;
pub mod cgroup;
pub mod credentials;
pub(crate) mod fields;
pub mod identity;
pub mod instance_files;
pub mod kernel_release;
pub mod maps;
pub mod meminfo;
pub mod memory_cgroup;
pub mod memory_policy;
pub mod mounts;
pub mod namespace;
pub mod numa_maps;
#[cfg(feature = "oracle")]
pub mod oracle;
pub mod own_mapping;
pub mod page_nodes;
pub mod pagemap;
pub mod pg_control;
pub mod pool;
pub mod postgresql_conf;
pub mod postmaster_opts;
pub mod pressure;
pub mod process;
pub mod procmap_query;
mod reader;
pub mod rlimit;
pub mod root;
pub mod service;
pub mod shm_devices;
pub mod smaps;
mod survey_cache;
pub mod sysctl;
pub mod sysvipc;
pub mod thp;

pub use instance_files::InstanceFiles;
pub use root::Root;
