//! What is known of a pool after the next boot.

use crate::Pages;

/// What a pool has after the next boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolAtBoot {
    /// So many pages.
    Set {
        /// The pages.
        pages: Pages,
        /// The file that sets them.
        file: String,
    },
    /// Nothing sets it.
    Unset,
    /// The number can't be known; the reason, a clause.
    Unknown(String),
}
