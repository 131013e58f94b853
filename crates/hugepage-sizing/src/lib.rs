//! The pool that a whole host needs: for all servers that run, for those that are only configured, and beside what others hold.
//!
//! Values in, values out, as in `hugepage_assess`, whose [`Capacity`](hugepage_assess::assessment::Capacity) says what a host can hold.
//! The extension, which sees one server, links none of it.
//!
//! ```
//! use hugepage_kernel::Pages;
//! use hugepage_sizing::Wants;
//!
//! assert_eq!(Wants::Pages(Pages(7), "the alert log".into()).pages(), Some(Pages(7)));
//! ```

mod sizing;
mod step;
mod stopped_databases;

pub use sizing::{Misfit, PoolNeed, Sizing};
pub use stopped_databases::{StoppedDatabase, Wants};
