//! What the kernel says of huge pages, what that means for a database server, and what to do about it.
//!
//! One direction: [`read`] takes the kernel's files from an injected root, [`assess`] is arithmetic on those facts,
//! [`advise`] puts the outcome into words and commands. Whoever shows the answer (SQL rows, log lines, files) decides
//! nothing. No PostgreSQL and no Oracle library is needed here.

pub mod advise;
pub mod assess;
pub mod collect;
pub mod error;
pub mod history;
pub mod metrics;
pub mod model;
pub mod notes;
pub mod read;
pub mod status_row;
pub mod units;

pub use error::ReadError;
pub use notes::Notes;
pub use status_row::StatusRow;
pub use units::{Bytes, PageSize, Pages};
