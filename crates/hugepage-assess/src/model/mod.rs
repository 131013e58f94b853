//! What an assessment takes: what was read of a server and its host, and what collectors have made of that.

mod base_limit;
mod facts;
mod next_start;
mod pool_state;
mod segment;
mod server;
mod strangers;

pub use base_limit::BaseLimit;
pub use facts::Facts;
pub use next_start::{CrashRecovery, CurrentStart, Demand, Pending};
pub use pool_state::{LockLimit, NodePools, PoolFact, PoolState};
pub use segment::{RESIZABLE, Segment, landing_of, landing_seen};
pub use server::{HugePages, Product, Requested, UseLargePages};
pub use strangers::{PagesOfStrangers, UnattachedSegment};
