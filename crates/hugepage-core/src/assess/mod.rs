//! Pure arithmetic on facts: where shared memory landed, why, what a restart would get, and how grave that is.

pub mod cause;
pub mod facts;
pub mod finding;
pub mod forecast;
pub mod landing;
pub mod oracle_size;
pub mod outlook;
pub mod page_tables;
pub mod share;
pub mod sizing;
pub mod status;

pub use cause::Cause;
pub use facts::{Asked, Facts, HugePages, LockLimit, Loss, PoolFact, Product, Segment};
pub use finding::{Finding, Severity, Threat};
pub use forecast::{Demand, Forecast, Ground, Pending};
pub use landing::Landing;
pub use outlook::Outlook;
pub use share::Share;
pub use sizing::Sizing;
pub use status::Status;
