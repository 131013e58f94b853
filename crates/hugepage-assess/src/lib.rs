//! Decides what facts about a database server and its host mean, and what to do: values in, values out.
//!
//! Nothing here opens a file, asks a server or reads a clock. [`model`] has the facts as types, [`assessment`] is arithmetic on
//! them, [`advice`] turns its result into messages, recommendations and commands, [`history`] compares it with records,
//! [`status_row`] and [`columns`] give it the form in which every output prints it.
//!
//! ```
//! use hugepage_assess::history::lost_pages;
//! use hugepage_assess::model::{Landing, PageKind};
//! use hugepage_kernel::PageSize;
//!
//! let was = PageKind { landing: Landing::Hugetlb, size: PageSize::new(2 << 20) };
//! let is = PageKind { landing: Landing::Base, size: None };
//! assert!(lost_pages(was, is).is_some());
//! ```

/// Shows a value as it is in JSON.
/// An enumeration whose values are shown as they are serialized: in snake case, if they have no other name.
macro_rules! words {
    ($(#[$about:meta])+ pub enum $name:ident { $($(#[$of:meta])+ $word:ident,)+ }) => {
        $(#[$about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name {
            $($(#[$of])+ $word,)+
        }

        impl $name {
            /// All of them.
            pub const ALL: [Self; [$(stringify!($word)),+].len()] = [$(Self::$word),+];
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                serde::Serialize::serialize(self, f)
            }
        }
    };
}

pub mod advice;
pub mod assessment;
pub mod columns;
pub mod history;
pub mod model;
pub mod pools;
pub mod status_row;

pub use status_row::StatusRow;
