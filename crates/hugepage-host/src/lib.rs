//! Surveys a host: every PostgreSQL and Oracle instance on it, seen from another process, what it has and what it asked for.
//!
//! Servers are found by the titles of their processes, and shared memory by the mappings of one process of each server. No
//! server is stopped or queried, and no page table is walked. What can't be read without privilege is a note, and what
//! depends on it is unknown.
//!
//! ```
//! use hugepage_host::survey;
//! use hugepage_kernel::Root;
//!
//! let survey = survey(&Root::at("/nonexistent"), 20);
//! assert!(survey.instances.is_empty() && !survey.notes.is_empty());
//! ```

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod alert_log;
mod asked;
mod changed_files;
mod clusterware;
mod context;
pub mod discover;
mod equal_sids;
pub mod host_advice;
mod inspect;
pub mod instance;
pub mod memory;
mod metrics;
mod neighbours;
mod next_start;
mod oracle;
mod pending;
mod pool_needs;
mod postgresql;
mod server_memory;
mod service_accounts;
pub mod status_row;
mod stopped;
mod survey;
mod switchover;

pub use instance::{Instance, InstanceKind, InstanceLanding, InstancePlace};
pub use next_start::{AskStart, ServerStart};
pub use service_accounts::{FILE as SERVICE_ACCOUNTS, is_usual as is_usual_service_account};
pub use stopped::StoppedOracle;
pub use survey::{Survey, survey, survey_for};
pub use switchover::PrimaryNeed;
