//! Surveys a host: every PostgreSQL and Oracle instance on it, seen from another process, what it has and what it asked for.
//!
//! Servers are found by the titles of their processes, and shared memory by the mappings of one process of each server. No server is
//! stopped or queried, and no page table is walked. If something may not be read, a note says so, and what depends on it is unknown.
//!
//! ```
//! use hugepage_host::survey;
//! use hugepage_kernel::Root;
//!
//! let survey = survey(&Root::at("/nonexistent"), 20);
//! assert!(survey.instances.is_empty() && !survey.notes.is_empty());
//! ```

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod anonymous;
mod assess;
mod cluster_paths;
mod context;
mod control_group;
mod data_directory;
mod discover;
pub mod escape;
mod glances;
mod holders;
pub mod host_advice;
mod host_directory;
mod identify;
mod inspect;
pub mod memory;
pub mod metrics;
mod next_start;
mod pool_needs;
mod postgresql;
mod postgresql_settings;
mod processes;
pub mod readers;
mod reading;
mod remembered;
mod segment;
mod server;
mod server_start;
mod service_accounts;
mod snapshot;
mod stopped_clusters;
mod stopped_needs;
mod stopped_readers;
mod strangers;
mod survey;

pub use assess::Instance;
pub use glances::{Stranger, Strangers};
pub use host_advice::verdict::HostVerdict;
pub use identify::{InstancePlace, ServerIdentity, ServerProduct};
pub use memory::ObservedMemory;
pub use next_start::{AskStart, ServerStart, StartProgram};
pub use postgresql::{PostgreSqlServer, PostgreSqlSettings};
pub use processes::is_postgresql;
pub use remembered::{POSTGRESQL_DATA, Remembered, told_servers};
pub use service_accounts::{SERVICE_ACCOUNTS, is_usual_service_account, listed_service_accounts};
pub use snapshot::{HostFacts, IN_CONTAINER, ServerFacts, Snapshot, StoppedServers, UnreadList};
pub use survey::{RecallPast, Survey};

use hugepage_kernel::Root;

/// Surveys the host, whose past nobody knows. `reserve_percent`: the percentage of memory that it keeps for base pages.
pub fn survey(root: &Root, reserve_percent: u32) -> Survey {
    Snapshot::read(root, &[], None).assess(reserve_percent)
}
