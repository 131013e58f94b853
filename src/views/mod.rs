//! One file for each view or function that a user sees, with its SQL beside it.

mod backends;
mod convert;
mod findings;
mod fix;
mod history;
mod host;
mod metrics;
mod page_tables;
mod pools;
mod preflight;
mod recommendations;
mod segments;
mod status;
