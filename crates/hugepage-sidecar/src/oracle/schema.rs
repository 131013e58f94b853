//! Column types in Rust, in a file, and in Oracle.

use hugepage_assess::columns::NamedValue;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// A size in bytes.
    Bytes,
    /// A number of pages; another column has the page size.
    Pages,
    /// A number of anything else.
    Count,
    /// A name, a path or a word, truncated to the width.
    Text(usize),
    /// Sentences, truncated between words, and further if the record would be too long.
    Prose(usize),
    /// What to do, with commands: as it is, or a sentence on where it is.
    Instruction(usize),
    /// A command, or a name to compare with: whole or NULL, because a part of it must not be used. Sentences are cut first.
    Command(usize),
    /// A timestamp in UTC, in seconds since 1970.
    UtcTime,
    /// Yes or no.
    Flag,
}

/// Digits of the largest 64-bit number.
const NUMBER_WIDTH: usize = 20;

impl ColumnType {
    /// The maximum bytes of a field.
    pub const fn width(self) -> usize {
        match self {
            Self::Bytes | Self::Pages | Self::Count => NUMBER_WIDTH,
            Self::Text(width) | Self::Prose(width) | Self::Instruction(width) | Self::Command(width) => width,
            Self::UtcTime => "YYYY-MM-DD HH24:MI:SS".len() - "24".len(),
            Self::Flag => 1,
        }
    }

    /// The type in the external table and in the object type. Timestamps are text there; the views convert them with a
    /// format that is independent of NLS settings.
    pub fn oracle_type(self) -> String {
        match self {
            Self::Bytes | Self::Pages | Self::Count => format!("NUMBER({NUMBER_WIDTH})"),
            _ => format!("VARCHAR2({})", self.width()),
        }
    }

    /// Whether the Oracle type is NUMBER.
    pub const fn is_number(self) -> bool {
        matches!(self, Self::Bytes | Self::Pages | Self::Count)
    }

    /// The type in the views.
    pub fn view_type(self) -> String {
        match self {
            Self::UtcTime => "DATE".to_owned(),
            _ => self.oracle_type(),
        }
    }

    /// Whether a value is as it is or not there.
    pub const fn is_whole(self) -> bool {
        matches!(self, Self::Instruction(_) | Self::Command(_))
    }

    /// Whether a value may be truncated or omitted so that the record fits.
    pub const fn may_be_shortened(self) -> bool {
        matches!(self, Self::Prose(_) | Self::Instruction(_) | Self::Command(_))
    }
}

/// A column of a file, of Oracle and of the documents.
#[derive(Debug)]
pub struct Column {
    /// A valid Oracle identifier of at most 30 bytes (the limit of 11.2), in lower case.
    pub name: &'static str,
    /// The type of the column.
    pub column_type: ColumnType,
    /// Meaning, unit, and meaning of NULL: the lines of the doc comment.
    pub comment: &'static [&'static str],
}

/// A file with its columns.
#[derive(Debug)]
pub struct DataFile {
    /// The name without `.dat`, which is also the name of the external table.
    pub stem: &'static str,
    /// The meaning of one record.
    pub comment: &'static [&'static str],
    /// The columns after the common ones. New columns are only appended.
    pub own: &'static [Column],
}

impl DataFile {
    /// The name of the file.
    pub fn name(&self) -> String {
        format!("{}.dat", self.stem)
    }
}

/// A record of a file as a Rust type.
pub trait FileRecord: Serialize {
    /// The file with its columns.
    const FILE: DataFile;

    /// The record with each value that has the name of a column; the others are NULL.
    fn named(values: impl IntoIterator<Item = NamedValue>) -> Self;

    /// The values in the order of the columns.
    fn values(&self) -> Vec<Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(columns)) => columns.into_iter().map(|(_, value)| value).collect(),
            _ => Vec::new(),
        }
    }
}

/// A value as that of a column; a list as one text.
pub fn column_value<T: Default + DeserializeOwned>(value: Value) -> T {
    let value = match value {
        Value::Array(parts) if parts.is_empty() => Value::Null,
        Value::Array(parts) => parts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; ").into(),
        value => value,
    };
    serde_json::from_value(value).unwrap_or_default()
}

/// The Rust type of a column type.
macro_rules! rust_type {
    (Bytes) => { Option<hugepage_kernel::Bytes> };
    (Pages) => { Option<hugepage_kernel::Pages> };
    (Count) => { Option<u64> };
    (Text) => { Option<String> };
    (Prose) => { Option<String> };
    (Instruction) => { Option<String> };
    (Command) => { Option<String> };
    (UtcTime) => { Option<u64> };
    (Flag) => { Option<bool> };
}

/// Defines a struct, which is also an object of JSON, and the columns of its fields. The doc comments become comments in Oracle.
macro_rules! record {
    (
        $(#[doc = $about:literal])+
        $record:ident = $stem:literal {
            $($(#[doc = $comment:literal])+ $name:ident: $kind:ident $(($width:literal))?,)+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $record {
            $($(#[doc = $comment])+ pub $name: $crate::oracle::schema::rust_type!($kind),)+
        }

        impl $crate::oracle::schema::FileRecord for $record {
            const FILE: $crate::oracle::schema::DataFile = $crate::oracle::schema::DataFile {
                stem: $stem,
                comment: &[$($about),+],
                own: &[$($crate::oracle::schema::Column {
                    name: stringify!($name),
                    column_type: $crate::oracle::schema::ColumnType::$kind $(($width))?,
                    comment: &[$($comment),+],
                }),+],
            };

            fn named(values: impl IntoIterator<Item = hugepage_assess::columns::NamedValue>) -> Self {
                let mut record = Self::default();
                for (name, value) in values {
                    match &*name {
                        $(stringify!($name) => record.$name = $crate::oracle::schema::column_value(value),)+
                        _ => {}
                    }
                }
                record
            }
        }
    };
}

pub(crate) use {record, rust_type};
