//! What the kernel says of huge pages, what that means for a database server, and what to do about it.
//!
//! The modules have one direction; each uses only those before it:
//!
//! 1. [`units`], [`notes`], [`error`] and [`escape`] serve all others.
//! 2. [`read`] parses one file format in each module and decides nothing.
//! 3. [`model`] has the facts about a server and its host as types.
//! 4. [`assess`] is arithmetic on the model and reads no file.
//! 5. [`collect`] fills the model from files, for one server or for a whole host, and hands it to [`assess`].
//! 6. [`history`] keeps assessments in a file and compares them.
//! 7. [`advise`] turns an assessment into messages, recommendations and commands.
//! 8. [`metrics`] turns it into OpenMetrics.
//!
//! The extension and the sidecar show the results and decide nothing. No module needs a PostgreSQL or Oracle library.

pub mod advise;
pub mod assess;
pub mod collect;
pub mod error;
pub mod escape;
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
