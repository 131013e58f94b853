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
mod one_row;
mod page_tables;
mod pools;
mod preflight;
mod recommendations;
mod segments;
mod status;
