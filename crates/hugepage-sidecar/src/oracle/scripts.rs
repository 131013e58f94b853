//! The SQL scripts, and the tables of docs/oracle.md, from their templates in sql/ and the columns.

use std::fmt::Display;

use askama::Template;
use clap::Args;

use crate::oracle::columns::{FILES, LATER_FILES, columns};
use crate::oracle::names::{OracleName, OraclePath};
use crate::oracle::schema::DataFile;
use crate::oracle::views::{self, View, sentence};

/// Names of objects in the database, and the path of the files.
#[derive(Debug, Args)]
pub struct ScriptSettings {
    /// Schema to create
    #[arg(long, default_value = "HUGEPAGE")]
    schema: OracleName,
    /// Role that may read the views
    #[arg(long, default_value = "HUGEPAGE_READER")]
    role: OracleName,
    /// Directory object
    #[arg(long, value_name = "NAME", default_value = "HUGEPAGE_DIR")]
    directory: OracleName,
    /// Directory that the sidecar writes to
    #[arg(long, value_name = "PATH", default_value = "/var/lib/hugepage-sidecar/oracle")]
    dir: OraclePath,
    /// Create no public synonyms
    #[arg(long)]
    no_synonyms: bool,
}

/// A script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// Creates all objects.
    Install,
    /// Upgrades an older installation to this version's columns.
    Upgrade,
    /// Removes all objects.
    Uninstall,
    /// External tables that run the sidecar at every SELECT.
    Live,
    /// Compares the page size of each segment in x$ksmssinfo with the views.
    CrossCheck,
    /// The query of a metric extension of Enterprise Manager.
    Metric,
    /// The columns of the views, as tables for docs/oracle.md.
    Columns,
}

#[derive(Template)]
#[template(path = "script.in", escape = "none")]
struct ScriptTemplate<'a> {
    script: Script,
    schema: &'a OracleName,
    role: &'a OracleName,
    directory: &'a OracleName,
    path: &'a OraclePath,
    synonyms: bool,
    version: &'static str,
    tables: &'a [ExternalTable],
    views: &'a [View],
}

/// A file as an external table.
#[derive(Debug)]
struct ExternalTable {
    name: &'static str,
    /// The package's function, `hosts` for hp_host.
    function: String,
    file: String,
    /// Whether older versions of the sidecar do not write it.
    is_later: bool,
    comment: String,
    columns: Vec<TableColumn>,
}

#[derive(Debug)]
struct TableColumn {
    name: &'static str,
    width: usize,
    oracle_type: String,
    is_number: bool,
    comment: String,
}

/// The text of a script.
pub fn render(script: Script, settings: &ScriptSettings) -> askama::Result<String> {
    let ScriptSettings { schema, role, directory, dir: path, no_synonyms } = settings;
    let tables: Vec<_> = FILES.iter().map(|file| external_table(file)).collect();
    let template = ScriptTemplate {
        script,
        schema,
        role,
        directory,
        path,
        synonyms: !no_synonyms,
        version: env!("CARGO_PKG_VERSION"),
        tables: &tables,
        views: &views::all(),
    };
    template.render().map(|text| text + "\n")
}

/// An SQL literal.
fn quoted(text: impl Display) -> String {
    format!("'{}'", text.to_string().replace('\'', "''"))
}

fn external_table(file: &DataFile) -> ExternalTable {
    let columns = columns(file).map(|column| TableColumn {
        name: column.name,
        width: column.column_type.width(),
        oracle_type: column.column_type.oracle_type(),
        is_number: column.column_type.is_number(),
        comment: sentence(column.comment),
    });
    ExternalTable {
        name: file.stem,
        function: format!("{}s", file.stem.trim_start_matches("hp_")),
        file: file.name(),
        is_later: LATER_FILES.contains(&file.stem),
        comment: sentence(file.comment),
        columns: columns.collect(),
    }
}
