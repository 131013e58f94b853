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
//! assert!(survey.instances.is_empty() && !survey.host.notes.is_empty());
//! ```

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod assess;
mod cluster_paths;
mod context;
mod control_group;
mod discover;
pub mod escape;
mod glances;
mod holders;
pub mod host_advice;
mod identify;
mod inspect;
pub mod memory;
pub mod metrics;
mod next_start;
mod pool_needs;
mod postgresql;
mod postgresql_service;
mod postgresql_units;
mod processes;
pub mod readers;
mod service_accounts;
mod snapshot;
mod stopped_clusters;
mod stopped_readers;
mod survey;

pub use assess::Instance;
pub use glances::{Stranger, Strangers};
pub use identify::{InstancePlace, ServerIdentity, ServerProduct};
pub use memory::ObservedMemory;
pub use next_start::{AskStart, ServerStart, StartProgram};
pub use postgresql::PostgreSqlServer;
pub use processes::is_postgresql;
pub use service_accounts::{SERVICE_ACCOUNTS, is_usual_service_account, listed_service_accounts};
pub use snapshot::{HostFacts, RecallPast, Snapshot, StoppedClusters};
pub use survey::{Survey, survey};
