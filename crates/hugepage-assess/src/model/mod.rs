//! The facts about a server and its host as types. Collectors fill them in, and assessments take them.

mod benefit_facts;
mod cause;
mod clusterware;
mod crash_recovery;
mod demand;
mod facts;
mod fault_cost;
mod fault_sample;
mod landing;
mod loss;
mod nodes;
mod pool_state;
mod postgresql_settings;
mod private_tables;
mod segment;
mod server;

pub use benefit_facts::BenefitFacts;
pub use cause::Cause;
pub use clusterware::{Clusterware, GridResource};
pub use crash_recovery::CrashRecovery;
pub use demand::{Demand, Pending};
pub use facts::{Facts, KeptPages};
pub use fault_cost::FaultCost;
pub use fault_sample::{FaultSample, ProcessSample};
pub use landing::Landing;
pub use loss::{Loss, Lost, PageKind};
pub use nodes::NodePools;
pub use pool_state::{LockLimit, PoolFact, PoolState};
pub use postgresql_settings::asked_by_settings;
pub use private_tables::{CountedProcess, PrivateTables};
pub use segment::Segment;
pub use server::{Asked, HugePages, Product, UseLargePages};
