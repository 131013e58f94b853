//! Pure arithmetic on facts: where shared memory landed, why, what a restart would get, and how grave that is.

pub mod finding;
pub mod forecast;
pub mod host;
pub mod oracle_size;
pub mod outlook;
pub mod page_tables;
pub mod pool_share;
pub mod status;

pub use crate::model::cause::Cause;
pub use crate::model::landing::Landing;
pub use crate::model::server::{Asked, Facts, HugePages, LockLimit, Loss, PoolFact, Product, Segment};
pub use finding::{Finding, Severity, Threat};
pub use forecast::{Demand, Forecast, Pending, PoolState};
pub use host::Sizing;
pub use outlook::Outlook;
pub use pool_share::Share;
pub use status::Status;
