//! Hosts with Oracle as they are: RAC, ASM, several homes, stopped and failed instances, on the kernels of the
//! distributions that Oracle runs on; from their files to the sentence that a person reads.

#![allow(clippy::disallowed_methods)]

mod builder;
mod equal_sids;
mod findings;
mod layouts;
mod limits;
mod matrix;
mod pending;
mod remnants;
mod start_limits;
mod stopped;
