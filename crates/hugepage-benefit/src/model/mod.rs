//! The facts from which the benefit is estimated.

mod benefit_facts;
mod fault_cost;
mod fault_sample;
mod private_tables;

pub use benefit_facts::BenefitFacts;
pub use fault_cost::FaultCost;
pub use fault_sample::{FaultSample, ProcessSample};
pub use private_tables::{CountedProcess, PrivateTables};
