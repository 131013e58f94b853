//! The SQL scripts, and the tables of docs/oracle-reference.md, from their templates in sql/ and the columns.

use std::fmt::Display;

use askama::Template;
use clap::Args;

use crate::oracle::names;
use crate::oracle::schema::{DataFile, FILES};
use crate::oracle::views::{self, OracleView};

/// Names of objects in the database, and the path of the files.
#[derive(Debug, Args)]
pub struct ScriptSettings {
    /// Schema to create
    #[arg(long, default_value = "HUGEPAGE", value_parser = names::object)]
    schema: String,
    /// Role that may read the views
    #[arg(long, default_value = "HUGEPAGE_READER", value_parser = names::object)]
    role: String,
    /// Directory object
    #[arg(long, value_name = "NAME", default_value = "HUGEPAGE_DIR", value_parser = names::object)]
    directory: String,
    /// Directory that the sidecar writes to
    #[arg(long, value_name = "PATH", default_value = "/var/lib/hugepage-sidecar/oracle", value_parser = names::path)]
    dir: String,
    /// Create no public synonyms
    #[arg(long)]
    no_synonyms: bool,
    /// Read the files by external tables alone, so that neither UTL_FILE nor SYS is needed
    #[arg(long)]
    external_tables: bool,
}

impl ScriptSettings {
    /// The way in which the views read the files.
    const fn route(&self) -> &'static str {
        if self.external_tables { "TABLE" } else { "FILE" }
    }
}

/// A script, or text, that the sidecar prints for Oracle Database.
#[derive(Clone, Copy, Debug)]
pub enum Script {
    /// Creates all objects, or upgrades an older installation to this version's columns.
    Install,
    /// Removes all objects.
    Uninstall,
    /// The columns of the views, as tables for docs/oracle-reference.md.
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
    let (version, views) = (env!("CARGO_PKG_VERSION"), views::all());
    let template = ScriptTemplate { script, settings, version, tables: &FILES, views: &views };
    template.render().map(|text| text + "\n")
}

/// An SQL literal.
fn quoted(text: impl Display) -> String {
    format!("'{}'", text.to_string().replace('\'', "''"))
}
