//! Asks what a start of a PostgreSQL server would get: one question, which the server's own program answers.
//!
//! `postgres -C shared_memory_size_in_huge_pages` loads the configuration and the preload libraries, calculates the size of
//! shared memory and ends, without allocating it. [`StartQuestion`] writes its command line and reads its end, [`StartAnswer`]
//! is what is known then. Nothing here runs a program: the server and the sidecar, which runs it as another user, do so by
//! rules of their own.
//!
//! ```
//! use std::path::Path;
//!
//! use hugepage_facts::StartAnswer; use hugepage_kernel::Bytes; use hugepage_start::{Ending, StartQuestion};
//!
//! let (data, settings) = (Path::new("/data"), vec![("shared_buffers", "1GB".into())]); let question =
//!     StartQuestion { major: 18, arguments: &[], data, settings, stand_in: None, default_page_size: None };
//! let answer = question.ask(|_command_line| Ending::Success("136705\n".to_owned()));
//! assert_eq!(answer, StartAnswer::Starts(Bytes(136_704 * 8192)));
//! ```

mod answer;
pub mod child_output;
pub mod data_directory;
pub mod majors;
pub mod parts;
mod question;

pub use answer::{SAYS, TwoStarts, not_checked};
pub use question::{Ending, StartQuestion};
