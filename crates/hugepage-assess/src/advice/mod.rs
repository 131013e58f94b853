//! Messages, log entries, recommendations and commands, ready to be shown and run.

pub mod command;
pub mod events;
pub mod message;
pub mod plan;
pub mod pool;
pub mod recommendation;

pub use message::{findings, hint, message};
pub use plan::Plan;
pub use plan::rows::recommendations;
pub use recommendation::Recommendation;
