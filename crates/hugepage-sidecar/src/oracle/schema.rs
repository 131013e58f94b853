//! The files for Oracle and their columns, as columns.txt of `hugepage-assess` declares them.

use std::sync::LazyLock;

use hugepage_assess::columns::{self, Column};

/// The version of the format. Another version has other file names, so that no reader confuses them.
pub const FORMAT_VERSION: u64 = 1;

/// The files in the order of renaming. Each begins with the common columns.
pub static FILES: LazyLock<Vec<DataFile>> = LazyLock::new(|| {
    let file = |&(name, view, comment, columns)| DataFile {
        name: format!("hp_{name}"),
        file: format!("hp_{name}.dat"),
        function: format!("{name}s"),
        count: format!("{name}_count"),
        view,
        comment,
        columns: [columns::ORACLE_COMMON, columns].concat(),
    };
    columns::FILES.iter().map(file).collect()
});

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
    /// Whether it has a column of that name.
    pub fn has(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column.name == name)
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
            let fixed = file
                .columns
                .iter()
                .map(|column| match column.kind.may_be_shortened() {
                    true => 1,
                    false => column.kind.width() + 1,
                });
            assert!(fixed.sum::<usize>() <= MAX_RECORD_BYTES, "{}", file.name);
        }
    }

    /// COMMENT ON takes 4000 bytes. A sentence without a period was truncated.
    #[test]
    fn comment_every_column() {
        for column in FILES.iter().flat_map(|file| &file.columns) {
            let comment = column.comment();
            assert!(
                comment.is_ascii() && comment.len() < 1000 && comment.ends_with('.'),
                "{comment}"
            );
        }
    }
}
