//! What a column can hold, in Rust, in a file, and in Oracle.

use std::time::SystemTime;

use hugepage_core::{Bytes, Pages};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// A size in bytes.
    Bytes,
    /// A number of pages of a size that is said elsewhere.
    Pages,
    /// Any other number.
    Count,
    /// A name, a path or a word, cut to the width.
    Text(usize),
    /// Sentences, cut between two words, and cut further where the record would be too long.
    Prose(usize),
    /// A command: whole, or NULL where it does not fit, because a part of one must not be run.
    Command(usize),
    /// A moment, UTC, to the second.
    UtcTime,
    /// Yes or no.
    Flag,
}

/// The longest number of 64 bits, and a little room.
const NUMBER_WIDTH: usize = 20;

impl ColumnType {
    /// The most bytes that a field takes.
    pub const fn width(self) -> usize {
        match self {
            Self::Bytes | Self::Pages | Self::Count => NUMBER_WIDTH,
            Self::Text(width) | Self::Prose(width) | Self::Command(width) => width,
            Self::UtcTime => "YYYY-MM-DD HH24:MI:SS".len() - "24".len(),
            Self::Flag => 1,
        }
    }

    /// The type of the external table's column and of the object type's attribute. Times stay text there; the views
    /// convert them, with a mask that depends on no NLS setting.
    pub fn oracle_type(self) -> String {
        match self {
            Self::Bytes | Self::Pages | Self::Count => format!("NUMBER({NUMBER_WIDTH})"),
            _ => format!("VARCHAR2({})", self.width()),
        }
    }

    /// Whether Oracle's column is a NUMBER.
    pub const fn is_number(self) -> bool {
        matches!(self, Self::Bytes | Self::Pages | Self::Count)
    }

    /// The type as the views have it.
    pub fn view_type(self) -> String {
        match self {
            Self::UtcTime => "DATE".to_owned(),
            _ => self.oracle_type(),
        }
    }

    /// Whether it may be shortened, or left out, for the record to fit.
    pub const fn may_be_shortened(self) -> bool {
        matches!(self, Self::Prose(_) | Self::Command(_))
    }
}

/// What a field holds, if anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldValue {
    /// For [`ColumnType::Bytes`], [`ColumnType::Pages`] and [`ColumnType::Count`].
    Number(u64),
    /// For the kinds of text.
    Text(String),
    /// For [`ColumnType::UtcTime`].
    Time(SystemTime),
    /// For [`ColumnType::Flag`].
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

/// One column: the same in the file, in Oracle and in the documents.
#[derive(Debug)]
pub struct Column {
    /// Legal as an Oracle identifier, of 30 bytes at most (11.2's limit), in small letters.
    pub name: &'static str,
    /// What it holds.
    pub column_type: ColumnType,
    /// What it means, its unit, and what NULL means: the lines of its doc comment.
    pub comment: &'static [&'static str],
}

/// One file.
#[derive(Debug)]
pub struct DataFile {
    /// The name without `.dat`: also the external table's.
    pub stem: &'static str,
    /// What one record is.
    pub comment: &'static [&'static str],
    /// Its columns behind the common ones. Only ever appended to.
    pub own: &'static [Column],
}

impl DataFile {
    /// The file's name.
    pub fn name(&self) -> String {
        format!("{}.dat", self.stem)
    }
}

/// A record of a file, as Rust has it.
pub trait FileRecord: Sized {
    /// The columns and, for a record that is a file's, the file.
    const FILE: DataFile;

    /// The values, in the order of the columns.
    fn values(&self) -> Vec<Option<FieldValue>>;

    /// The record of a JSON object with a member for every column that is not NULL.
    fn from_json(object: serde_json::Map<String, serde_json::Value>) -> anyhow::Result<Self>;
}

/// The type of a field that holds a kind.
macro_rules! rust_type {
    (Bytes) => { Option<hugepage_core::Bytes> };
    (Pages) => { Option<hugepage_core::Pages> };
    (Count) => { Option<u64> };
    (Text) => { Option<String> };
    (Prose) => { Option<String> };
    (Command) => { Option<String> };
    (UtcTime) => { Option<std::time::SystemTime> };
    (Flag) => { Option<bool> };
}

/// Makes a struct, and the columns that its fields are, from one definition: the doc comments become Oracle's.
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
