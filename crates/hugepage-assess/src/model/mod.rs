//! The facts about a server and its host as types. Collectors fill them in, and assessments take them.

mod base_limit;
mod facts;
mod next_start;
mod pool_holder;
mod pool_state;
mod segment;
mod server;

pub use base_limit::BaseLimit;
pub use facts::{Facts, Past};
pub use next_start::{CrashRecovery, CurrentStart, Demand, Pending};
pub use pool_holder::{PagesOfStrangers, PoolHolder, UnattachedSegment};
pub use pool_state::{LockLimit, NodePools, PoolFact, PoolState};
pub use segment::{Cause, Landing, Loss, Lost, PageKind, RESIZABLE, Segment, TransparentPages};
pub use server::{HugePages, Product, Requested, UseLargePages};
