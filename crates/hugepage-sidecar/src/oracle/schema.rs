//! Files and their columns, in Rust, in a file, and in Oracle.

use std::collections::BTreeMap;

use hugepage_assess::columns::NamedValue;
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
    /// Meaning, unit, and meaning of NULL: the doc comment.
    pub comment: &'static str,
}

/// A file with its columns.
#[derive(Debug)]
pub struct DataFile {
    /// The name of the external table.
    pub name: &'static str,
    /// The name of the file.
    pub file: &'static str,
    /// The function of the package that reads it.
    pub function: &'static str,
    /// The column of hp_host.dat that has the number of its records.
    pub count: &'static str,
    /// The meaning of one record.
    pub comment: &'static str,
    /// The columns after the common ones. New columns are only appended.
    pub own: &'static [Column],
}

/// The values of a record, in the order of the columns.
pub type FileRecord = Vec<Value>;

impl DataFile {
    /// Whether older versions of the sidecar do not write the file: its count in hp_host.dat is NULL then.
    pub fn is_later(&self) -> bool {
        ["hp_segment", "hp_start"].contains(&self.name)
    }

    /// The record of the values that columns declare, and for the other columns of those that have their names; else they are NULL.
    pub fn record(
        &self,
        declared: impl IntoIterator<Item = Option<Value>>,
        named: impl IntoIterator<Item = NamedValue>,
    ) -> FileRecord {
        let mut named: BTreeMap<_, _> = named.into_iter().collect();
        let value = |(column, declared): (&Column, Option<Value>)| {
            declared.unwrap_or_else(|| named.remove(column.name).unwrap_or_default())
        };
        self.own.iter().zip(declared).map(value).collect()
    }
}

/// Defines a file, its columns, and the function that makes a record of it. The doc comments become comments in Oracle. A column
/// without a value of its own has the one of its name, if there is one.
macro_rules! data_file {
    (
        $(#[doc = $about:literal])+
        $file:ident = $word:literal, $record:ident($($argument:ident: $type:ty),*)
        $(where { $(let $local:ident = $known:expr;)+ })? {
            $($(#[doc = $comment:literal])+ $name:ident: $kind:ident $(($width:literal))? $(= $value:expr)?,)+
        }
    ) => {
        $(#[doc = $about])+
        pub static $file: $crate::oracle::schema::DataFile = $crate::oracle::schema::DataFile {
            name: concat!("hp_", $word),
            file: concat!("hp_", $word, ".dat"),
            function: concat!($word, "s"),
            count: concat!($word, "_count"),
            comment: concat!($($about),+).trim_ascii(),
            own: &[$($crate::oracle::schema::Column {
                name: stringify!($name),
                column_type: $crate::oracle::schema::ColumnType::$kind $(($width))?,
                comment: concat!($($comment),+).trim_ascii(),
            }),+],
        };

        /// A record of it, with those of `named` that have the names of columns.
        pub fn $record(
            $($argument: $type,)*
            named: impl IntoIterator<Item = hugepage_assess::columns::NamedValue>,
        ) -> $crate::oracle::schema::FileRecord {
            $($(let $local = $known;)+)?
            $file.record([$($crate::oracle::schema::data_file!(@value $($value)?)),+], named)
        }
    };
    (@value) => { None };
    (@value $value:expr) => { Some(hugepage_assess::columns::value(&$value)) };
}

pub(crate) use data_file;
