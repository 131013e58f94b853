//! Decides what facts about a database server and its host mean, and what to do: values in, values out.
//!
//! Nothing here opens a file, asks a server or reads a clock. [`model`] has what an assessment takes, [`assessment`] is arithmetic on
//! them, [`advice`] turns its result into messages, recommendations and commands, [`history`] compares it with records,
//! [`status_row`] and [`columns`] give it the form in which every output prints it.
//!
//! ```
//! use hugepage_assess::history::lost_pages;
//! use hugepage_facts::{Landing, PageKind};
//! use hugepage_kernel::PageSize;
//!
//! let was = PageKind { landing: Landing::Hugetlb, size: PageSize::new(2 << 20) };
//! let is = PageKind { landing: Landing::Base, size: None };
//! assert!(lost_pages(was, is).is_some());
//! ```

pub mod advice;
pub mod assessment;
pub mod columns;
pub mod history;
pub mod model;
pub mod pools;
pub mod status_row;

pub use status_row::StatusRow;
