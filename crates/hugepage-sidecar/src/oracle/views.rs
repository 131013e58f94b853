//! The views: columns of the files, with ages, and timestamps as Oracle dates.

use crate::oracle::columns::{COMMON, HOST, POOL};
use crate::oracle::instance_columns::{FINDING, INSTANCE, SEGMENT, START};
use crate::oracle::schema::{Column, ColumnType, DataFile};

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

/// All views, in the order of the documents.
pub fn all() -> Vec<OracleView> {
    let of_oracle =
        view("hugepage_status", &INSTANCE, "Huge pages of the Oracle instances of this host: one row per instance.");
    vec![
        OracleView { condition: "r.kind <> 'postgresql'", ..of_oracle },
        view(
            "hugepage_instances",
            &INSTANCE,
            "The same for all instances of this host, including PostgreSQL servers: one row per instance.",
        ),
        view(
            "hugepage_history",
            &START,
            "Starts of the Oracle instances in their alert logs, the oldest first: one row per start.",
        ),
        view(
            "hugepage_segments",
            &SEGMENT,
            "Segments of the SGA of the running Oracle instances: one row per segment.",
        ),
        view(
            "hugepage_pools",
            &POOL,
            "Pools of huge pages of this host: one row per page size, and one per NUMA node.",
        ),
        view("hugepage_findings", &FINDING, "Recommendations for this host, ordered by priority: one row per setting."),
        view("hugepage_hosts", &HOST, "The memory of this host: one row."),
    ]
}

fn view(name: &'static str, file: &'static DataFile, comment: &'static str) -> OracleView {
    OracleView { name, comment, function: file.function, condition: "", columns: columns(file) }
}

/// The columns of a view: the SID, if the file has it, what is common to all, and those of the file.
fn columns(file: &'static DataFile) -> Vec<ViewColumn> {
    let common = |name: &str| COMMON.own.iter().find(|column| column.name == name);
    let sid = file.own.iter().find(|column| column.name == "sid");
    let mut columns: Vec<_> = sid.into_iter().chain(common("snapshot_utc")).map(stored).collect();
    columns.push(computed(
        "age_seconds",
        "hugepage_advisor.age_seconds(r.snapshot_utc)",
        "NUMBER",
        "Age of the snapshot in seconds.",
    ));
    if sid.is_some() {
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
    columns.extend(common("host_name").map(stored));
    columns.extend(file.own.iter().filter(|column| column.name != "sid").map(stored));
    columns
}

fn stored(column: &Column) -> ViewColumn {
    let name = column.name;
    let expression = match column.column_type {
        ColumnType::UtcTime => format!("TO_DATE(r.{name}, 'YYYY-MM-DD HH24:MI:SS', 'NLS_CALENDAR=GREGORIAN')"),
        _ => format!("r.{name}"),
    };
    ViewColumn { name, expression, oracle_type: column.column_type.view_type(), comment: column.comment }
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
            if ["instances", "findings", "starts", "segments"].contains(&view.function) {
                assert_eq!(names[..3], ["sid", "snapshot_utc", "age_seconds"], "{}", view.name);
            }
        }
    }
}
