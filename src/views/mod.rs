//! The SQL views and functions: one Rust file and one SQL file for each.

mod backends;
mod benefit;
mod convert;
mod findings;
mod fix;
mod history;
mod host;
mod metrics;
mod nodes;
mod page_tables;
mod pools;
mod preflight;
mod recommendations;
mod rows;
mod segments;
mod status;
