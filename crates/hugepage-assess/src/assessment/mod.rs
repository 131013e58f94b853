//! Pure arithmetic on facts: where shared memory landed, why, what a restart would get, and how severe that is.

pub mod advisory;
mod at_boot;
pub mod capacity;
mod cause;
mod compared;
mod excesses;
pub mod find;
pub mod finding;
pub mod forecast;
mod landing;
pub mod limits;
pub mod node_room;
pub mod outlook;
pub mod outlook_notes;
pub mod page_tables;
pub mod placement;
pub mod pool_share;
pub mod status;

pub use at_boot::AtBoot;
pub use capacity::Capacity;
pub use finding::{Finding, Severity, Threat};
pub use forecast::Forecast;
pub use node_room::NodeRoom;
pub use outlook::Outlook;
pub use pool_share::Share;
pub use status::Status;
