//! Columns: `columns.txt` declares each once, and every output has name, type and meaning from there.
//!
//! A value has its name in a row, [`columns!`](crate::columns!) or [`row!`](crate::row!), and a name that is not declared does not
//! compile. JSON and CSV have all fields of a row. A view of SQL, a file for Oracle and the metrics take the value of each of their
//! columns by its name.

use std::borrow::Cow;

use serde::Serialize;
pub use serde_json::Value;

include!(concat!(env!("OUT_DIR"), "/columns.rs"));

/// The type of a column, with its unit; columns.txt says what each is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ColumnType {
    Bytes,
    Pages,
    Count,
    Int,
    Ratio,
    Oid,
    Flag,
    Time,
    Utc,
    Word(usize),
    Text(usize),
    Prose(usize),
    Instruction(usize),
    Command(usize),
    Texts,
    Row,
}

/// Digits of the largest 64-bit number.
const NUMBER_WIDTH: usize = 20;

impl ColumnType {
    /// The maximum bytes of a field of Oracle's files.
    pub const fn width(self) -> usize {
        match self {
            Self::Word(width)
            | Self::Text(width)
            | Self::Prose(width)
            | Self::Instruction(width)
            | Self::Command(width) => width,
            Self::Utc => "YYYY-MM-DD HH24:MI:SS".len() - "24".len(),
            Self::Flag => 1,
            _ => NUMBER_WIDTH,
        }
    }

    /// The type in Oracle's external tables and object types. Timestamps are text there; the views convert them with a format that
    /// is independent of NLS settings.
    pub fn oracle_type(self) -> String {
        if self.is_number() {
            format!("NUMBER({NUMBER_WIDTH})")
        } else {
            format!("VARCHAR2({})", self.width())
        }
    }

    /// Whether its values are whole numbers.
    pub const fn is_number(self) -> bool {
        matches!(self, Self::Bytes | Self::Pages | Self::Count | Self::Int)
    }

    /// Whether a value is as it is or not there.
    pub const fn is_whole(self) -> bool {
        matches!(self, Self::Instruction(_) | Self::Command(_))
    }

    /// Whether a value may be truncated or omitted so that the record fits.
    pub const fn may_be_shortened(self) -> bool {
        self.is_whole() || matches!(self, Self::Prose(_))
    }
}

/// A column as columns.txt declares it.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The name of its value in a row.
    pub name: &'static str,
    /// The metric that shows it; the same as the name for what is no metric.
    pub metric: &'static str,
    /// Its type.
    pub kind: ColumnType,
    /// What it means, without its unit, and what NULL is if that is not unknown.
    pub meaning: &'static str,
    /// The words of which a metric has one, a series each; empty for a number.
    pub words: &'static [&'static str],
}

impl Column {
    /// The meaning as HELP of a metric: NULL is no sample there, or no word that holds.
    pub fn help(&self) -> String {
        let (null, more) = match self.words {
            [] => ("no sample", ""),
            _ => ("all 0", "; 1 for the one that holds, else 0"),
        };
        sentence(&(self.meaning.replace("NULL", null) + more))
    }

    /// The meaning as a sentence with the unit.
    pub fn comment(&self) -> String {
        let sentence = sentence(self.meaning);
        if self.kind != ColumnType::Bytes {
            return sentence;
        }
        let (what, rest) = sentence.split_at(sentence.find([';', '.']).unwrap_or_default());
        format!("{what}, in bytes{rest}")
    }
}

fn sentence(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    first.to_ascii_uppercase() + rest + "."
}

/// A column of a row: its name, and its value as in JSON.
pub type NamedValue = (Cow<'static, str>, Value);

/// The value of a column; null if it is unknown.
pub fn value(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// The fields of a struct as columns.
pub fn fields<R: Serialize>(row: &R) -> impl Iterator<Item = NamedValue> + use<R> {
    let fields = value(row)
        .as_object_mut()
        .map(std::mem::take)
        .unwrap_or_default();
    fields.into_iter().map(|(name, value)| (name.into(), value))
}

/// Columns of a row, each with its name: `row! { page_size: pool.page_size }`.
#[macro_export]
macro_rules! row {
    ($($name:ident: $value:expr),* $(,)?) => {
        [$((std::borrow::Cow::Borrowed($crate::columns::declared::$name), $crate::columns::value(&$value))),*]
    };
}

/// The values of a view's row that no other row has; each of its columns must be in one of them, or it does not compile:
/// `row_of! { STATUS, StatusRow; shared_buffers: size }`.
#[macro_export]
macro_rules! row_of {
    ($section:ident $(, $row:ident)*; $($name:ident: $value:expr),* $(,)?) => {{
        const _: () = $crate::columns::require($crate::columns::$section, &[
            $($row::NAMES,)* &[$($crate::columns::declared::$name),*],
        ]);
        $crate::row! { $($name: $value),* }
    }};
}

/// Panics when it is compiled, if one of the `columns` has its name in none of these rows.
pub const fn require(columns: &[Column], rows: &[&[&str]]) {
    let mut column = 0;
    while column < columns.len() {
        let (mut row, mut is_there) = (0, false);
        while row < rows.len() {
            let mut field = 0;
            while field < rows[row].len() {
                is_there |= is_same(rows[row][field].as_bytes(), columns[column].name.as_bytes());
                field += 1;
            }
            row += 1;
        }
        assert!(is_there, "a column of the view has no value in its row");
        column += 1;
    }
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// Makes a struct with a column in each field, and with the value of each the function `new`. A field that is only shown, and is in
/// no output for programs, stands in the block `shown`.
#[macro_export]
macro_rules! columns {
    (
        $(#[$about:meta])+
        $row:ident($($argument:ident: $argument_type:ty),+) $(where { $(let $local:ident = $known:expr;)+ })? {
            $($(#[$meta:meta])* $name:ident: $kind:ty = $value:expr,)+
        } $(shown { $($(#[$shown_meta:meta])* $shown:ident: $shown_kind:ty = $shown_value:expr,)+ })?
    ) => {
        $(#[$about])+
        #[derive(Debug, serde::Serialize)]
        #[allow(missing_docs, reason = "columns.txt has the meaning of each field")]
        pub struct $row {
            $($(#[$meta])* pub $name: $kind,)+
            $($($(#[$shown_meta])* #[serde(skip)] pub $shown: $shown_kind,)+)?
        }

        impl $row {
            /// The names of its fields.
            pub const NAMES: &'static [&'static str] = &[$($crate::columns::declared::$name),+];

            /// The row, with the value of each column.
            pub fn new($($argument: $argument_type),+) -> Self {
                $($(let $local = $known;)+)?
                Self { $($name: $value,)+ $($($shown: $shown_value,)+)? }
            }
        }
    };
}
