//! Readers: each takes the text of one kernel file, and an edge that opens it below an injected [`Root`].
//!
//! Readers know nothing of advice. A field the kernel at hand does not have is `None`.

pub mod boot;
pub mod buddyinfo;
pub mod cgroup;
pub mod devices;
pub mod holding;
pub mod identity;
pub mod limits;
pub mod maps;
pub mod meminfo;
#[cfg(feature = "oracle")]
pub mod oracle;
pub mod pool;
pub mod postgresql_conf;
pub mod postmaster_opts;
pub mod process;
pub mod procmap_query;
pub mod record;
pub mod root;
pub mod smaps;
pub mod sysctl;
pub mod sysvipc;
pub mod thp;

pub use root::Root;
