//! What is so and what to do about it, in words that can be shown as they are, and in commands that can be run.

pub mod command;
pub mod fix;
#[cfg(feature = "oracle")]
pub mod host;
pub mod largest;
pub mod log;
mod phrases;
pub mod recommendation;
mod remedy;
pub mod restart;
pub mod rules;
pub mod terms;
pub mod watch;
pub mod words;

pub use recommendation::Recommendation;
pub use rules::recommendations;
pub use words::{hint, message};
