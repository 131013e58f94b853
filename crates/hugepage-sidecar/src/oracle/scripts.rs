//! The SQL scripts, and the tables of docs/oracle-reference.md, from their templates in sql/ and the columns.

use std::fmt::Display;

use anyhow::{Result, ensure};
use askama::Template;
use clap::Args;

use crate::oracle::columns::{FILES, columns};
use crate::oracle::names::{self, with_suffix};
use crate::oracle::schema::DataFile;
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

/// The nodes of a cluster.
#[derive(Debug, Args)]
pub struct ClusterSettings {
    #[command(flatten)]
    script: ScriptSettings,
    /// Directory on a file system of all nodes, with a directory of each node's name
    #[arg(long, value_name = "PATH", value_parser = names::path)]
    shared_dir: String,
    /// Name of a node; once for each
    #[arg(long = "node", value_name = "NAME", required = true, value_parser = names::node)]
    nodes: Vec<String>,
}

/// A script, or text, that the sidecar prints for Oracle Database.
#[derive(Clone, Copy, Debug)]
pub enum Script<'a> {
    /// Creates all objects, or upgrades an older installation to this version's columns.
    Install,
    /// Removes all objects.
    Uninstall,
    /// A view of the instances of all nodes of a cluster.
    Cluster(&'a [ClusterNode]),
    /// The columns of the views, as tables for docs/oracle-reference.md.
    Columns,
}

#[derive(Template)]
#[template(path = "script.in", escape = "none")]
struct ScriptTemplate<'a> {
    script: Script<'a>,
    settings: &'a ScriptSettings,
    version: &'static str,
    /// The files, each as an external table.
    tables: &'static [&'static DataFile],
    views: &'a [OracleView],
}

/// A node of a cluster, and its files.
#[derive(Debug)]
pub struct ClusterNode {
    name: String,
    directory: String,
    path: String,
}

/// The text of [`Script::Cluster`].
pub fn render_cluster(settings: &ClusterSettings) -> Result<String> {
    let ClusterSettings { script, shared_dir, nodes } = settings;
    ensure!(!script.external_tables, "the files of other nodes are read by UTL_FILE: omit --external-tables");
    let node = |(number, name): (usize, &String)| {
        let directory = with_suffix(&script.directory, &format!("_{number}"));
        Ok(ClusterNode { name: name.clone(), directory, path: names::path(&format!("{shared_dir}/{name}"))? })
    };
    let nodes: Vec<_> = (1..).zip(nodes).map(node).collect::<Result<_>>()?;
    Ok(render(Script::Cluster(&nodes), script)?)
}

/// The text of a script.
pub fn render(script: Script<'_>, settings: &ScriptSettings) -> askama::Result<String> {
    let (version, views) = (env!("CARGO_PKG_VERSION"), views::all());
    let template = ScriptTemplate { script, settings, version, tables: &FILES, views: &views };
    template.render().map(|text| text + "\n")
}

/// An SQL literal.
fn quoted(text: impl Display) -> String {
    format!("'{}'", text.to_string().replace('\'', "''"))
}
