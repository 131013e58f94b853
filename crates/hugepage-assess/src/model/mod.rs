//! The facts about a server and its host as types. Collectors fill them in, and assessments take them.

mod facts;
mod next_start;
mod pool_holder;
mod pool_state;
mod segment;
mod server;

pub use facts::{Facts, Past};
pub use next_start::{CrashRecovery, CurrentStart, Demand, Pending};
pub use pool_holder::{PagesOfStrangers, PoolHolder};
pub use pool_state::{LockLimit, NodePools, OtherPool, PoolFact, PoolState};
pub use segment::{Cause, Landing, Loss, Lost, PageKind, RESIZABLE, Segment};
pub use server::{HugePages, Product, Requested, UseLargePages};
