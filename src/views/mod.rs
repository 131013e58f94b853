//! The SQL views and functions: a SQL file for each, and a Rust file for those that show one thing.

mod history;
mod host;
mod preflight;
mod processes;
pub mod rows;
mod status;
