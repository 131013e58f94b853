//! What is so and what to do about it, in words that can be shown as they are, and in commands that can be run.

pub mod command;
pub mod fix;
pub mod largest;
pub mod log;
pub mod recommendation;
pub mod restart;
pub mod rules;
pub mod words;

pub use recommendation::Recommendation;
pub use rules::recommendations;
pub use words::{hint, message};
