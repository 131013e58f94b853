//! The views: columns of the files, with ages, and timestamps as Oracle dates.

use crate::oracle::schema::{Column, ColumnType, DataFile, FILES};

/// A view of the package's records.
#[derive(Debug)]
pub struct OracleView {
    /// The name of the view.
    pub name: &'static str,
    /// The meaning of one row.
    pub comment: &'static str,
    /// The function of the package that the view selects from.
    pub function: &'static str,
    /// The condition on the rows of the view; empty for all.
    pub condition: &'static str,
    /// The columns of the view.
    pub columns: Vec<ViewColumn>,
}

/// A column of a view.
#[derive(Debug)]
pub struct ViewColumn {
    /// The name of the column.
    pub name: &'static str,
    /// The expression of the column; `r` is the record.
    pub expression: String,
    /// The Oracle type of the column.
    pub oracle_type: String,
    /// The meaning of the column.
    pub comment: &'static str,
}

/// All views: that of each file, and one of the instances without PostgreSQL servers.
pub fn all() -> Vec<OracleView> {
    let of_oracle = FILES.iter().filter(|file| file.function == "instances").map(|file| OracleView {
        name: "hugepage_status",
        comment: "Huge pages of the Oracle instances of this host: one row per instance.",
        condition: "r.kind <> 'postgresql'",
        ..view(file)
    });
    of_oracle.chain(FILES.iter().map(view)).collect()
}

fn view(file: &'static DataFile) -> OracleView {
    OracleView {
        name: file.view,
        comment: file.comment,
        function: &file.function,
        condition: "",
        columns: columns(&file.columns),
    }
}

/// The columns of a view: the SID, if the file has it, what is common to all, and those of the file.
fn columns(of_file: &'static [Column]) -> Vec<ViewColumn> {
    const FIRST: [&str; 5] = ["sid", "snapshot_utc", "host_name", "format_version", "snapshot_id"];
    let named = |name: &str| of_file.iter().find(|column| column.name == name).map(stored);
    let sid = named("sid");
    let has_sid = sid.is_some();
    let mut columns: Vec<_> = sid.into_iter().chain(named("snapshot_utc")).collect();
    columns.push(computed(
        "age_seconds",
        "hugepage_advisor.age_seconds(r.snapshot_utc)",
        "NUMBER",
        "Age of the snapshot in seconds.",
    ));
    if has_sid {
        // An instance in a container may have a host with a name of its own.
        columns.push(computed(
            "this_instance",
            "hugepage_advisor.this_instance(NVL(r.instance_host, r.host_name), r.sid)",
            "VARCHAR2(1)",
            "Y for the instance of this session, otherwise N.",
        ));
    }
    columns.push(computed(
        "consistent",
        "r.consistent",
        "VARCHAR2(1)",
        "Y if all files are of one snapshot; N if they were being replaced: repeat the query before comparing views.",
    ));
    columns.extend(named("host_name"));
    columns.extend(of_file.iter().filter(|column| !FIRST.contains(&column.name)).map(stored));
    columns
}

fn stored(column: &Column) -> ViewColumn {
    let name = column.name;
    let (expression, oracle_type) = match column.column_type {
        ColumnType::Utc => {
            (format!("TO_DATE(r.{name}, 'YYYY-MM-DD HH24:MI:SS', 'NLS_CALENDAR=GREGORIAN')"), "DATE".to_owned())
        }
        of_file => (format!("r.{name}"), of_file.oracle_type()),
    };
    ViewColumn { name, expression, oracle_type, comment: column.comment }
}

fn computed(name: &'static str, expression: &str, oracle_type: &str, comment: &'static str) -> ViewColumn {
    ViewColumn { name, expression: expression.to_owned(), oracle_type: oracle_type.to_owned(), comment }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lead_with_the_common_columns() {
        for view in all() {
            let names: Vec<_> = view.columns.iter().map(|column| column.name).collect();
            assert!(view.name.len() <= 30);
            if ["instances", "findings", "starts"].contains(&view.function) {
                assert_eq!(names[..3], ["sid", "snapshot_utc", "age_seconds"], "{}", view.name);
            }
        }
    }
}
