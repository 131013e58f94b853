//! Readers: each takes the text of one kernel file, and an edge that opens it below an injected [`Root`].
//!
//! Readers know nothing of advice. A field the kernel at hand does not have is `None`.

pub mod access_log;
pub mod accounts;
mod beneath;
pub mod boot;
pub mod buddyinfo;
pub mod cgroup;
pub mod credentials;
pub mod identity;
pub mod instance_files;
pub mod maps;
pub mod meminfo;
pub mod namespace;
#[cfg(feature = "oracle")]
pub mod oracle;
pub mod own_mapping;
pub mod pool;
pub mod postgresql_conf;
pub mod postmaster_opts;
pub mod process;
pub mod procmap_query;
pub mod rlimit;
pub mod root;
pub mod shm_devices;
pub mod smaps;
pub mod sysctl;
pub mod sysvipc;
pub mod thp;

pub use instance_files::InstanceFiles;
pub use root::Root;
