//! Advice on Oracle instances and their host.

pub mod recommendations;
pub mod stopped;
