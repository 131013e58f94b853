//! Column types in Rust, in a file, and in Oracle.

use std::time::SystemTime;

use hugepage_kernel::{Bytes, Pages};

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
    /// A command, or a name to compare with: NULL if it does not fit, because a part of it must not be used. Sentences are
    /// shortened first.
    Command(usize),
    /// A timestamp in UTC, in seconds.
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
            Self::Text(width) | Self::Prose(width) | Self::Command(width) => width,
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

    /// Whether a value may be truncated or omitted so that the record fits.
    pub const fn may_be_shortened(self) -> bool {
        matches!(self, Self::Prose(_) | Self::Command(_))
    }
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldValue {
    /// A number, for [`ColumnType::Bytes`], [`ColumnType::Pages`] and [`ColumnType::Count`].
    Number(u64),
    /// A text, for the text types.
    Text(String),
    /// A time, for [`ColumnType::UtcTime`].
    Time(SystemTime),
    /// A yes or no, for [`ColumnType::Flag`].
    Flag(bool),
}

impl From<Bytes> for FieldValue {
    fn from(size: Bytes) -> Self {
        Self::Number(size.0)
    }
}

impl From<Pages> for FieldValue {
    fn from(pages: Pages) -> Self {
        Self::Number(pages.0)
    }
}

impl From<u64> for FieldValue {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<String> for FieldValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<SystemTime> for FieldValue {
    fn from(time: SystemTime) -> Self {
        Self::Time(time)
    }
}

impl From<bool> for FieldValue {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
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
pub trait FileRecord: Sized {
    /// The file with its columns.
    const FILE: DataFile;

    /// The values in the order of the columns.
    fn values(&self) -> Vec<Option<FieldValue>>;

    /// Reads the record from a JSON object with the columns that are not NULL.
    fn from_json(object: serde_json::Map<String, serde_json::Value>) -> anyhow::Result<Self>;
}

/// The Rust type of a column type.
macro_rules! rust_type {
    (Bytes) => { Option<hugepage_kernel::Bytes> };
    (Pages) => { Option<hugepage_kernel::Pages> };
    (Count) => { Option<u64> };
    (Text) => { Option<String> };
    (Prose) => { Option<String> };
    (Command) => { Option<String> };
    (UtcTime) => { Option<std::time::SystemTime> };
    (Flag) => { Option<bool> };
}

/// Defines a struct and the columns of its fields. The doc comments become comments in Oracle.
macro_rules! record {
    (
        $(#[doc = $about:literal])+
        $record:ident = $stem:literal {
            $($(#[doc = $comment:literal])+ $name:ident: $kind:ident $(($width:literal))?,)+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, Default)]
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

            fn values(&self) -> Vec<Option<$crate::oracle::schema::FieldValue>> {
                vec![$(self.$name.clone().map(Into::into)),+]
            }

            fn from_json(mut object: serde_json::Map<String, serde_json::Value>) -> anyhow::Result<Self> {
                let record = Self { $($name: $crate::oracle::json::take(&mut object, stringify!($name))?),+ };
                $crate::oracle::json::reject_unknown(object)?;
                Ok(record)
            }
        }
    };
}

pub(crate) use {record, rust_type};
