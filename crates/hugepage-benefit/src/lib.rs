//! Estimates what huge pages would save a server, from two looks at its processes and the time of a page fault here.
//!
//! [`Observation`](observation::Observation) looks, [`Benefit`] is the estimate, [`rows`] are what is shown of it. The numbers
//! that can't be measured are missing, never zero, and each says whether it was measured, counted or estimated.
//!
//! ```
//! use hugepage_benefit::benefit_value::Confidence;
//!
//! assert_eq!(Confidence::Measured.to_string(), "measured");
//! ```

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod benefit_value;
mod estimate;
pub mod model;
pub mod observation;
pub mod page_fault_runs;
mod private_table_count;
pub mod rows;
pub mod sampling;
mod shared_faults;
mod shared_tables;

pub use estimate::Benefit;
