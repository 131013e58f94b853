//! Pure arithmetic on facts: where shared memory landed, why, what a restart would get, and how severe that is.

pub mod advisory;
mod at_boot;
pub mod capacity;
mod compared;
mod find;
mod finding;
mod forecast;
pub mod limits;
mod nodes;
mod outlook;
pub mod page_tables;
mod status;

pub use at_boot::AtBoot;
pub use capacity::Capacity;
pub use finding::{Finding, Severity, Threat};
pub use forecast::Forecast;
pub use nodes::{NodeRoom, NodeRow, Placement};
pub use outlook::{Outlook, Share};
pub use status::Status;
