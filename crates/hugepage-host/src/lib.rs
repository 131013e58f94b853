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
mod stopped_clusters;
mod stopped_needs;
mod stopped_readers;
mod strangers;
mod survey;

pub use anonymous::anonymous;
pub use assess::Instance;
pub use host_advice::verdict::HostVerdict;
pub use next_start::{AskStart, ServerStart, StartProgram};
pub use processes::is_postgresql;
pub use reading::{IN_CONTAINER, read};
pub use remembered::{POSTGRESQL_DATA, remembered, told_servers};
pub use service_accounts::{SERVICE_ACCOUNTS, is_usual_service_account, listed_service_accounts};
pub use stopped_clusters::find_stopped;
pub use survey::{RecallPast, Survey, decide, recall};

use hugepage_kernel::Root;

/// Surveys the host, whose past nobody knows. `reserve_percent`: the percentage of memory that it keeps for base pages.
pub fn survey(root: &Root, reserve_percent: u32) -> Survey {
    decide(&read(root, &[], None), reserve_percent)
}
