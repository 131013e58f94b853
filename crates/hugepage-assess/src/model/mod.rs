//! The facts about a server and its host as types. Collectors fill them in, and assessments take them.

mod cause;
mod crash_recovery;
mod current_start;
mod demand;
mod facts;
mod landing;
mod loss;
mod nodes;
mod pool_holder;
mod pool_state;
mod segment;
mod server;

pub use cause::Cause;
pub use crash_recovery::CrashRecovery;
pub use current_start::CurrentStart;
pub use demand::{Demand, Pending};
pub use facts::{Facts, Past};
pub use landing::Landing;
pub use loss::{Loss, Lost, PageKind};
pub use nodes::NodePools;
pub use pool_holder::{PagesOfStrangers, PoolHolder};
pub use pool_state::{LockLimit, OtherPool, PoolFact, PoolState};
pub use segment::{RESIZABLE, Segment};
pub use server::{HugePages, Product, Requested, UseLargePages};
