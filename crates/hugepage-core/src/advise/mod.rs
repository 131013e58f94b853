//! What is so and what to do about it, in words that can be shown as they are, and in commands that can be run.

pub mod command;
pub mod restart;
pub mod words;

pub use words::{hint, message};
