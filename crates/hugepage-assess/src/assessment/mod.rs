//! Pure arithmetic on facts: where shared memory landed, why, what a restart would get, and how severe that is.

pub mod advisory;
mod at_boot;
mod base_limits;
pub mod capacity;
mod compared;
mod danger;
mod find;
mod finding;
mod forecast;
pub mod limits;
mod nodes;
mod outlook;
pub mod page_tables;
mod start;
mod status;

pub use at_boot::AtBoot;
pub use base_limits::base_limits;
pub use capacity::Capacity;
pub use danger::Danger;
pub use finding::{Finding, Severity, Threat};
pub use forecast::Forecast;
pub use nodes::{NodeRoom, NodeRow, Placement};
pub use outlook::{Outlook, Share};
pub use start::Start;
pub use status::Status;
