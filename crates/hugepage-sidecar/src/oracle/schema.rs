//! The files and their columns, as sql/files.txt lists them.

use std::sync::LazyLock;

/// The version of the format. Another version has other file names, so that no reader confuses them.
pub const FORMAT_VERSION: u64 = 1;

/// The files in the order of renaming. Each begins with the common columns.
pub static FILES: LazyLock<Vec<DataFile>> = LazyLock::new(|| {
    let lines = || include_str!("sql/files.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut files: Vec<DataFile> = Vec::new();
    for line in lines() {
        match line.strip_prefix("file ") {
            Some(heading) => files.push(DataFile::with_heading(heading)),
            None => files.last_mut().expect("a file precedes its columns").columns.push(Column::parse(line)),
        }
    }
    let common = files.remove(0).columns;
    files.iter_mut().for_each(|file| file.columns = [common.clone(), std::mem::take(&mut file.columns)].concat());
    files
});

/// The type of a column; sql/files.txt says what each is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    Number,
    Text(usize),
    Prose(usize),
    Instruction(usize),
    Command(usize),
    Utc,
    Flag,
}

/// Digits of the largest 64-bit number.
const NUMBER_WIDTH: usize = 20;

impl ColumnType {
    fn parse(text: &str) -> Self {
        let (name, width) = text.trim_end_matches(')').split_once('(').unwrap_or((text, "0"));
        let width = width.parse().expect("a width is a number");
        match name {
            "bytes" | "pages" | "count" => Self::Number,
            "text" => Self::Text(width),
            "prose" => Self::Prose(width),
            "instruction" => Self::Instruction(width),
            "command" => Self::Command(width),
            "utc" => Self::Utc,
            "flag" => Self::Flag,
            _ => panic!("{name} is no type of a column"),
        }
    }

    /// The maximum bytes of a field.
    pub const fn width(self) -> usize {
        match self {
            Self::Number => NUMBER_WIDTH,
            Self::Text(width) | Self::Prose(width) | Self::Instruction(width) | Self::Command(width) => width,
            Self::Utc => "YYYY-MM-DD HH24:MI:SS".len() - "24".len(),
            Self::Flag => 1,
        }
    }

    /// The type in the external table and in the object type. Timestamps are text there; the views convert them with a
    /// format that is independent of NLS settings.
    pub fn oracle_type(self) -> String {
        if self.is_number() { format!("NUMBER({NUMBER_WIDTH})") } else { format!("VARCHAR2({})", self.width()) }
    }

    /// Whether the Oracle type is NUMBER.
    pub const fn is_number(self) -> bool {
        matches!(self, Self::Number)
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
#[derive(Clone, Debug)]
pub struct Column {
    /// A valid Oracle identifier of at most 30 bytes (the limit of 11.2), in lower case.
    pub name: &'static str,
    /// The type of the column.
    pub column_type: ColumnType,
    /// Meaning, unit, and meaning of NULL.
    pub comment: &'static str,
}

impl Column {
    fn parse(line: &'static str) -> Self {
        let (name, rest) = line.split_once(' ').expect("a column has a type");
        let (column_type, comment) = rest.split_once(' ').expect("a column has a comment");
        Self { name, column_type: ColumnType::parse(column_type), comment }
    }
}

/// A file with its columns.
#[derive(Debug)]
pub struct DataFile {
    /// The name of the external table.
    pub name: String,
    /// The name of the file.
    pub file: String,
    /// The function of the package that reads it.
    pub function: String,
    /// The column of hp_host.dat that has the number of its records.
    pub count: String,
    /// The name of the view of it.
    pub view: &'static str,
    /// The meaning of one record.
    pub comment: &'static str,
    /// Its columns, the common ones first.
    pub columns: Vec<Column>,
}

impl DataFile {
    fn with_heading(heading: &'static str) -> Self {
        let mut words = heading.splitn(3, ' ');
        let mut word = || words.next().expect("a file has a name, a view and a comment");
        let (name, view, comment) = (word(), word(), word());
        Self {
            name: format!("hp_{name}"),
            file: format!("hp_{name}.dat"),
            function: format!("{name}s"),
            count: format!("{name}_count"),
            view,
            comment,
            columns: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::record_line::MAX_RECORD_BYTES;
    use crate::oracle::scripts::object;

    #[test]
    fn use_legal_and_unique_names() {
        for file in FILES.iter() {
            let mut names: Vec<_> = file.columns.iter().map(|column| column.name).collect();
            for name in &names {
                assert!(object(name).is_ok(), "{name}");
            }
            assert!(object(file.view).is_ok(), "{}", file.view);
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), file.columns.len(), "{}", file.name);
        }
    }

    /// Only columns that may be shortened can make a record too long.
    #[test]
    fn fit_records_without_shortened_columns() {
        for file in FILES.iter() {
            let fixed = file.columns.iter().map(|column| match column.column_type.may_be_shortened() {
                true => 1,
                false => column.column_type.width() + 1,
            });
            assert!(fixed.sum::<usize>() <= MAX_RECORD_BYTES, "{}", file.name);
        }
    }

    /// COMMENT ON takes 4000 bytes. A sentence without a period was truncated.
    #[test]
    fn comment_every_column() {
        for column in FILES.iter().flat_map(|file| &file.columns) {
            let comment = column.comment;
            assert!(comment.is_ascii() && comment.len() < 1000 && comment.ends_with('.'), "{comment}");
        }
    }
}
