//! Converts the core's types to SQL's. `None`, unknown, becomes NULL.

use hugepage_kernel::{Bytes, PageSize, Pages};

/// A quantity that SQL shows as `bigint`; larger values become the largest `bigint`.
pub trait ToBigint {
    /// The quantity as a number that fits `bigint`.
    fn bigint(self) -> i64;
}

impl ToBigint for Bytes {
    fn bigint(self) -> i64 {
        i64::try_from(self.0).unwrap_or(i64::MAX)
    }
}

impl ToBigint for Pages {
    fn bigint(self) -> i64 {
        i64::try_from(self.0).unwrap_or(i64::MAX)
    }
}

impl ToBigint for PageSize {
    fn bigint(self) -> i64 {
        self.bytes().bigint()
    }
}

/// The value as bigint; NULL if it is unknown.
pub fn bigint<T: ToBigint>(value: Option<T>) -> Option<i64> {
    value.map(ToBigint::bigint)
}

/// Text that is valid in every database encoding: each character that is not ASCII becomes a question mark. No command has one.
pub fn text(text: String) -> String {
    if text.is_ascii() { text } else { text.replace(|character: char| !character.is_ascii(), "?") }
}
