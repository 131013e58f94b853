//! The SQL views and functions: one Rust file and one SQL file for each.

mod backends;
pub mod datum;
mod findings;
mod history;
mod host;
mod nodes;
mod page_tables;
mod pools;
mod preflight;
mod recommendations;
mod rows;
mod segments;
mod status;
