//! One record for every start and every change of state of an instance, and what was lost between two of them.

pub mod record;
pub mod regression;

pub use record::{Event, Record};
