//! From the core's types to SQL's. NULL stays "could not be known".

use hugepage_core::{Bytes, PageSize, Pages};

/// A quantity that SQL shows as `bigint`; what exceeds it is shown as the largest one.
pub trait ToBigint {
    /// The number.
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

/// The same for what may be unknown.
pub fn bigint<T: ToBigint>(value: Option<T>) -> Option<i64> {
    value.map(ToBigint::bigint)
}

/// Text that any database encoding holds: what is not ASCII, as in a path, becomes a question mark.
pub fn text(text: String) -> String {
    if text.is_ascii() { text } else { text.replace(|character: char| !character.is_ascii(), "?") }
}
