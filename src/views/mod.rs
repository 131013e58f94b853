//! One file for each view or function that a user sees, with its SQL beside it.

mod convert;
mod pools;
mod segments;
mod status;
