//! Columns by name: each is declared once, in a row, and every output finds it there.
//!
//! JSON and CSV have all fields of a row. A view of SQL and a file for Oracle list the columns that they have, with types and
//! comments of their own, and take the value of each by its name.

use std::borrow::Cow;

use serde::Serialize;
pub use serde_json::Value;

/// A column of a row: its name, and its value as in JSON.
pub type NamedValue = (Cow<'static, str>, Value);

/// The value of a column; null if it is unknown.
pub fn value(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// The fields of a struct as columns.
pub fn fields<R: Serialize>(row: &R) -> impl Iterator<Item = NamedValue> + use<R> {
    let fields = value(row).as_object_mut().map(std::mem::take).unwrap_or_default();
    fields.into_iter().map(|(name, value)| (name.into(), value))
}

/// Columns of a row, each with its name: `row! { page_size: pool.page_size }`.
#[macro_export]
macro_rules! row {
    ($($name:ident: $value:expr),+ $(,)?) => {
        [$((std::borrow::Cow::Borrowed(stringify!($name)), $crate::columns::value(&$value))),+]
    };
}

/// A row that [`columns!`](crate::columns!) declares.
pub trait Columns: Serialize {
    /// The names of its fields.
    const NAMES: &'static [&'static str];
}

/// Declares a struct with a column in each field, and with the value of each the function `new`, which makes it.
#[macro_export]
macro_rules! columns {
    (
        $(#[$about:meta])+
        $row:ident($($argument:ident: $argument_type:ty),+) $(where { $(let $local:ident = $known:expr;)+ })? {
            $($(#[$meta:meta])* $name:ident: $kind:ty = $value:expr,)+
        }
    ) => {
        $(#[$about])+
        #[derive(Debug, serde::Serialize)]
        pub struct $row {
            $($(#[$meta])* pub $name: $kind,)+
        }

        impl $crate::columns::Columns for $row {
            const NAMES: &'static [&'static str] = &[$(stringify!($name)),+];
        }

        impl $row {
            /// The row, with the value that each column declares.
            pub fn new($($argument: $argument_type),+) -> Self {
                $($(let $local = $known;)+)?
                Self { $($name: $value,)+ }
            }
        }
    };
}
