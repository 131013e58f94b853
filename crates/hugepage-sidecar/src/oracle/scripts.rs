//! The SQL scripts, and the columns as tables, from templates in sql/, the columns, and the caller's names.

use std::fmt::Display;

use anyhow::{Result, ensure};
use askama::Template;
use clap::Args;
use hugepage_assess::columns::{Column, ColumnType};

use crate::oracle::schema::{DataFile, FILES};

/// The longest name in Oracle 11.2 to 12.1, in bytes; longer ones are legal since 12.2.
const MAX_NAME_BYTES: usize = 30;

/// Names of objects in the database, and the path of the files.
#[derive(Debug, Args)]
pub struct ScriptSettings {
    /// Schema to create
    #[arg(long, default_value = "HUGEPAGE", value_parser = object)]
    schema: String,
    /// Role that may read the views
    #[arg(long, default_value = "HUGEPAGE_READER", value_parser = object)]
    role: String,
    /// Directory object
    #[arg(long, value_name = "NAME", default_value = "HUGEPAGE_DIR", value_parser = object)]
    directory: String,
    /// Directory that the sidecar writes to
    #[arg(long, value_name = "PATH", default_value = "/var/lib/hugepage-sidecar/oracle", value_parser = path)]
    dir: String,
    /// Create public synonyms for the views
    #[arg(long)]
    synonyms: bool,
    /// Read the files by external tables alone, so that neither UTL_FILE nor SYS is needed
    #[arg(long)]
    external_tables: bool,
}

/// A script, or text, that the sidecar prints for Oracle Database.
#[derive(Clone, Copy, Debug)]
pub enum Script {
    /// Creates all objects, or upgrades an older installation to this version's columns.
    Install,
    /// Removes all objects.
    Uninstall,
    /// The columns of the views, as tables.
    Columns,
}

#[derive(Template)]
#[template(path = "script.in", escape = "none")]
struct ScriptTemplate<'a> {
    script: Script,
    settings: &'a ScriptSettings,
    version: &'static str,
    /// The files, each as an external table.
    tables: &'static [DataFile],
    views: &'a [OracleView],
}

/// The text of a script.
pub fn render(script: Script, settings: &ScriptSettings) -> askama::Result<String> {
    let views = views();
    let template = ScriptTemplate {
        script,
        settings,
        version: env!("CARGO_PKG_VERSION"),
        tables: &FILES,
        views: &views,
    };
    template.render().map(|text| text + "\n")
}

/// An SQL literal.
fn quoted(text: impl Display) -> String {
    format!("'{}'", text.to_string().replace('\'', "''"))
}

/// An unquoted name that the caller inserts into the SQL, in upper case as in the data dictionary: letters, digits, `_`, `$` and `#`.
pub fn object(name: &str) -> Result<String> {
    let legal = |character: char| character.is_ascii_alphanumeric() || "_$#".contains(character);
    ensure!(
        name.starts_with(|first: char| first.is_ascii_alphabetic()) && name.chars().all(legal),
        "\"{}\" is not a valid Oracle name: use a letter, then letters, digits, _, $ and #",
        name.escape_debug()
    );
    ensure!(
        name.len() <= MAX_NAME_BYTES,
        "\"{name}\" exceeds {MAX_NAME_BYTES} bytes, the limit of Oracle 11.2"
    );
    Ok(name.to_ascii_uppercase())
}

/// The path of a directory object.
fn path(path: &str) -> Result<String> {
    let legal = |character: char| character.is_ascii_alphanumeric() || "/._+-".contains(character);
    ensure!(
        path.starts_with('/') && path.chars().all(legal),
        "\"{}\" is not a valid path: use an absolute path of letters, digits and /._+-",
        path.escape_debug()
    );
    let path = path.trim_end_matches('/');
    let odd = path
        .split('/')
        .skip(1)
        .any(|part| ["", ".", ".."].contains(&part));
    ensure!(
        !path.is_empty() && !odd,
        "\"{path}\" must not contain empty parts, . or .."
    );
    ensure!(path.len() <= 200, "\"{path}\" exceeds 200 bytes");
    Ok(path.to_owned())
}

/// A view of the package's records.
struct OracleView {
    name: &'static str,
    /// The meaning of one row.
    comment: &'static str,
    /// The function of the package that the view selects from.
    function: &'static str,
    /// The condition on the rows of the view; empty for all.
    condition: &'static str,
    columns: Vec<ViewColumn>,
}

/// A column of a view.
struct ViewColumn {
    name: &'static str,
    /// The expression of the column; `r` is the record.
    expression: String,
    oracle_type: String,
    comment: String,
}

/// All views: that of each file, with ages, and timestamps as Oracle dates, and one of the instances without PostgreSQL servers.
fn views() -> Vec<OracleView> {
    let view = |file: &'static DataFile| OracleView {
        name: file.view,
        comment: file.comment,
        function: &file.function,
        condition: "",
        columns: columns(&file.columns),
    };
    let of_oracle = FILES
        .iter()
        .filter(|file| file.function == "instances")
        .map(|file| OracleView {
            name: "hugepage_status",
            comment: "Huge pages of the Oracle instances of this host: one row per instance.",
            condition: "r.kind <> 'postgresql'",
            ..view(file)
        });
    of_oracle.chain(FILES.iter().map(view)).collect()
}

/// What views compute: the name of a column, its expression, type and comment.
const COMPUTED: [[&str; 4]; 3] = [
    [
        "age_seconds",
        "hugepage_advisor.age_seconds(r.snapshot_utc)",
        "NUMBER",
        "Age of the snapshot in seconds.",
    ],
    [
        "this_instance",
        // An instance in a container may have a host with a name of its own.
        "hugepage_advisor.this_instance(NVL(r.instance_host, r.host_name), r.sid)",
        "VARCHAR2(1)",
        "Y for the instance of this session, otherwise N.",
    ],
    [
        "consistent",
        "r.consistent",
        "VARCHAR2(1)",
        "Y if all files are of one snapshot; N if they were being replaced: repeat the query before comparing views.",
    ],
];

/// The columns of a view: the SID, if the file has it, what is common to all, and those of the file.
fn columns(of_file: &'static [Column]) -> Vec<ViewColumn> {
    const FIRST: [&str; 5] = [
        "sid",
        "snapshot_utc",
        "host_name",
        "format_version",
        "snapshot_id",
    ];
    let named = |name: &str| {
        of_file
            .iter()
            .find(|column| column.name == name)
            .map(stored)
    };
    let sid = named("sid");
    let has_sid = sid.is_some();
    let computed = COMPUTED
        .iter()
        .filter(|[name, ..]| has_sid || *name != "this_instance");
    let computed = computed.map(|&[name, expression, oracle_type, comment]| ViewColumn {
        name,
        expression: expression.to_owned(),
        oracle_type: oracle_type.to_owned(),
        comment: comment.to_owned(),
    });
    let others = of_file
        .iter()
        .filter(|column| !FIRST.contains(&column.name))
        .map(stored);
    let common = sid
        .into_iter()
        .chain(named("snapshot_utc"))
        .chain(computed)
        .chain(named("host_name"));
    common.chain(others).collect()
}

/// Whether the session has the role of DBAs: what root is to run is not for applications that may read the views.
const IS_DBA: &str = "EXISTS (SELECT 1 FROM session_roles WHERE role = 'DBA')";

fn stored(column: &Column) -> ViewColumn {
    let name = column.name;
    let (expression, oracle_type) = match column.kind {
        ColumnType::Utc => (
            format!("TO_DATE(r.{name}, 'YYYY-MM-DD HH24:MI:SS', 'NLS_CALENDAR=GREGORIAN')"),
            "DATE".to_owned(),
        ),
        of_file if ["hint", "command"].contains(&name) => (
            format!("CASE WHEN {IS_DBA} THEN r.{name} END"),
            of_file.oracle_type(),
        ),
        of_file => (format!("r.{name}"), of_file.oracle_type()),
    };
    ViewColumn {
        name,
        expression,
        oracle_type,
        comment: column.comment(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validate_names() {
        for (name, legal) in [
            ("hugepage", "HUGEPAGE"),
            ("C##HUGEPAGE", "C##HUGEPAGE"),
            ("a", "A"),
            (
                "a234567890123456789012345678_0",
                "A234567890123456789012345678_0",
            ),
        ] {
            assert_eq!(object(name).unwrap(), legal);
        }
        let long = "a2345678901234567890123456789_1";
        let wrong = [
            "", "1a", "_a", "a b", "a;", "a'", "a\"b", "a.b", "a--", "a\nb", "ä", long,
        ];
        for name in wrong {
            assert!(object(name).is_err(), "{name}");
        }
    }

    #[test]
    fn validate_paths() {
        assert_eq!(
            path("/var/lib/hugepage-sidecar/").unwrap(),
            "/var/lib/hugepage-sidecar"
        );
        let long = format!("/{}", "a".repeat(200));
        let wrong = [
            "", "/", "var", "/a'b", "/a b", "/a\"", "/a;", "/a&b", "/a\n", "/a/../b", "/a/./b",
            "//a", "/a//b", &long,
        ];
        for wrong in wrong {
            assert!(path(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lead_with_the_common_columns() {
        for view in views() {
            let names: Vec<_> = view.columns.iter().map(|column| column.name).collect();
            assert!(view.name.len() <= 30);
            if ["instances", "findings"].contains(&view.function) {
                assert_eq!(
                    names[..3],
                    ["sid", "snapshot_utc", "age_seconds"],
                    "{}",
                    view.name
                );
            }
        }
    }
}
