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
mod compare;
mod container;
mod context;
mod discover;
pub mod escape;
mod glances;
mod holders;
pub mod host_advice;
mod identify;
mod inspect;
pub mod instance;
pub mod memory;
pub mod metrics;
mod next_start;
mod observe;
mod other_pools;
mod past;
mod pool_needs;
mod postgresql;
mod postgresql_service;
mod postgresql_units;
mod processes;
pub mod readers;
mod request;
mod server_names;
mod service;
mod service_accounts;
mod snapshot;
mod stopped_clusters;
mod stopped_readers;
mod strangers;
mod survey;

pub use identify::{InstancePlace, ServerIdentity, ServerProduct};
pub use instance::Instance;
pub use next_start::{AskStart, ServerStart, StartProgram};
pub use observe::ObservedMemory;
pub use past::RecallPast;
pub use postgresql::PostgreSqlServer;
pub use server_names::is_postgresql;
pub use service_accounts::{
    FILE as SERVICE_ACCOUNTS, is_usual as is_usual_service_account, listed as listed_service_accounts,
};
pub use snapshot::{HostFacts, Snapshot, StoppedClusters};
pub use strangers::{Stranger, Strangers};
pub use survey::{Survey, survey};
