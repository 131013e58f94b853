//! The SQL scripts, and the documents' tables, from their templates in sql/ and the columns.

use anyhow::{Context, Result};
use minijinja::{Environment, UndefinedBehavior, context};
use serde::Serialize;

use crate::oracle::columns::{FILES, FORMAT_VERSION, columns};
use crate::oracle::names::{Name, OraclePath};
use crate::oracle::schema::File;
use crate::oracle::views::{self, sentence};

/// What is the installer's to choose.
#[derive(Clone, Debug, Serialize)]
pub struct Choices {
    /// The schema of everything.
    pub schema: Name,
    /// Who has it may select from the views.
    pub role: Name,
    /// The directory object.
    pub directory: Name,
    /// Where the sidecar writes.
    pub path: OraclePath,
    /// Whether the views and the package get public synonyms.
    pub synonyms: bool,
}

/// A script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// Creates everything.
    Install,
    /// Brings an older installation to this version's columns.
    Upgrade,
    /// Removes everything.
    Uninstall,
    /// Tables that run the sidecar at every SELECT.
    Live,
    /// SYS's own look at the page size of each segment, beside ours.
    CrossCheck,
    /// The query of a metric extension of Enterprise Manager.
    Metric,
    /// The columns of the views, as tables for docs/oracle.md.
    Columns,
}

impl Script {
    const fn template(self) -> &'static str {
        match self {
            Self::Install => "install.sql",
            Self::Upgrade => "upgrade.sql",
            Self::Uninstall => "uninstall.sql",
            Self::Live => "live.sql",
            Self::CrossCheck => "cross_check.sql",
            Self::Metric => "metric.sql",
            Self::Columns => "columns.md",
        }
    }
}

macro_rules! templates {
    ($($name:literal),+ $(,)?) => { [$(($name, include_str!(concat!("sql/", $name, ".in")))),+] };
}

const TEMPLATES: [(&str, &str); 15] = templates![
    "install.sql",
    "upgrade.sql",
    "uninstall.sql",
    "live.sql",
    "cross_check.sql",
    "metric.sql",
    "columns.md",
    "settings.sql",
    "objects.sql",
    "table.sql",
    "package.sql",
    "body.sql",
    "grants.sql",
    "synonyms.sql",
    "compiled.sql",
];

/// A file, as the templates see it.
#[derive(Debug, Serialize)]
struct TableOf {
    name: &'static str,
    /// The package's function, `hosts` for hp_host.
    function: String,
    file: String,
    comment: String,
    columns: Vec<ColumnOf>,
}

#[derive(Debug, Serialize)]
struct ColumnOf {
    name: &'static str,
    width: usize,
    oracle_type: String,
    is_number: bool,
    comment: String,
}

/// The text of a script.
pub fn render(script: Script, choices: &Choices) -> Result<String> {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_keep_trailing_newline(true);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.add_filter("quoted", |text: &str| format!("'{}'", text.replace('\'', "''")));
    for (name, source) in TEMPLATES {
        environment.add_template(name, source)?;
    }
    let tables: Vec<_> = FILES.iter().map(|file| table(file)).collect();
    let context = context! {
        version => env!("CARGO_PKG_VERSION"),
        format_version => FORMAT_VERSION,
        tables => tables,
        views => views::all(),
        ..minijinja::Value::from_serialize(choices)
    };
    let template = environment.get_template(script.template())?;
    template.render(context).with_context(|| format!("could not make {}", script.template()))
}

fn table(file: &File) -> TableOf {
    let columns = columns(file).map(|column| ColumnOf {
        name: column.name,
        width: column.kind.width(),
        oracle_type: column.kind.oracle_type(),
        is_number: column.kind.is_number(),
        comment: sentence(column.comment),
    });
    TableOf {
        name: file.stem,
        function: format!("{}s", file.stem.trim_start_matches("hp_")),
        file: file.name(),
        comment: sentence(file.comment),
        columns: columns.collect(),
    }
}
