//! `oracle`: files for Oracle Database, and the SQL that reads them.

use std::io::{self, BufRead, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use hugepage_core::read::Root;

use crate::commands::survey::{SurveyOptions, survey_with_sizings};
use crate::exit::{self, Exit};
use crate::oracle::account::{Group, User};
use crate::oracle::files::WriterOptions;
use crate::oracle::names::{OracleName, OraclePath};
use crate::oracle::scripts::{self, Script, ScriptSettings};
use crate::oracle::snapshot::OracleSnapshot;
use crate::oracle::{self, json_snapshot, survey_snapshot};

/// Commands for Oracle Database.
#[derive(Debug, Subcommand)]
pub enum OracleCommand {
    /// Create files without rows in DIR, so that the first SELECT works
    Prepare {
        /// A directory owned by root, without symbolic links in its path and not below ORACLE_BASE
        dir: PathBuf,
        #[command(flatten)]
        access: AccessOptions,
    },
    /// Write the files once; `watch --oracle-dir DIR` updates them continuously
    Write {
        /// A directory owned by root, without symbolic links in its path and not below ORACLE_BASE
        dir: PathBuf,
        #[command(flatten)]
        access: AccessOptions,
        #[command(flatten)]
        survey: SurveyOptions,
        /// Write snapshots from standard input instead: one JSON object per line
        #[arg(long, hide = true)]
        records: bool,
    },
    /// Print one of the files, such as hp_pool.dat
    Print {
        /// Name of the file
        file: String,
        #[command(flatten)]
        survey: SurveyOptions,
    },
    /// Print the SQL*Plus script that creates all objects
    InstallSql(SqlNames),
    /// Print the SQL*Plus script that upgrades an older installation
    UpgradeSql(SqlNames),
    /// Print the SQL*Plus script that removes all objects
    UninstallSql(SqlNames),
    /// Print the script for tables that run this program at every SELECT; read its warnings first
    LiveSql(SqlNames),
    /// Print the query for SYS that compares the views with x$ksmssinfo
    CrossCheckSql(SqlNames),
    /// Print the query for a metric extension of Enterprise Manager
    MetricSql(SqlNames),
    /// Print the columns of all views as Markdown
    Columns(SqlNames),
}

/// Owner, group and permissions of the files.
#[derive(Debug, Args)]
pub struct AccessOptions {
    /// Owner of the files, a name or a number [default: the current user]
    #[arg(long, value_name = "USER", value_parser = User::find)]
    owner: Option<User>,
    /// Group of the files, a name or a number [default: the group of the directory]
    #[arg(long, value_name = "GROUP", value_parser = Group::find)]
    group: Option<Group>,
    /// Permissions of the files, octal [default: 640]
    #[arg(long, value_parser = file_mode)]
    mode: Option<u32>,
}

impl AccessOptions {
    /// The same for the writer.
    pub const fn writer_options(&self) -> WriterOptions {
        WriterOptions { owner: self.owner, group: self.group, mode: self.mode }
    }
}

/// Names of objects in the database.
#[derive(Debug, Args)]
pub struct SqlNames {
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

fn file_mode(text: &str) -> Result<u32> {
    let mode = u32::from_str_radix(text, 8)?;
    anyhow::ensure!(mode & !0o664 == 0, "the files must not be executable, nor writable by others");
    Ok(mode)
}

/// Runs the command.
pub fn run(root: &Root, command: &OracleCommand) -> Result<Exit> {
    match command {
        OracleCommand::Prepare { dir, access } => oracle::prepare(dir, &access.writer_options())?,
        OracleCommand::Write { dir, access, records: true, .. } => {
            for line in io::stdin().lock().lines() {
                let snapshot_id = oracle::write(dir, &json_snapshot::parse(&line?)?, &access.writer_options())?;
                writeln!(io::stdout(), "{snapshot_id}")?;
            }
        }
        OracleCommand::Write { dir, access, survey, .. } => {
            oracle::write(dir, &snapshot(root, survey), &access.writer_options())?;
        }
        OracleCommand::Print { file, survey } => {
            let text =
                oracle::text(file, &snapshot(root, survey)).with_context(|| format!("there is no file {file}"))?;
            io::stdout().write_all(text.as_bytes())?;
        }
        OracleCommand::InstallSql(names) => print(Script::Install, names)?,
        OracleCommand::UpgradeSql(names) => print(Script::Upgrade, names)?,
        OracleCommand::UninstallSql(names) => print(Script::Uninstall, names)?,
        OracleCommand::LiveSql(names) => print(Script::Live, names)?,
        OracleCommand::CrossCheckSql(names) => print(Script::CrossCheck, names)?,
        OracleCommand::MetricSql(names) => print(Script::Metric, names)?,
        OracleCommand::Columns(names) => print(Script::Columns, names)?,
    }
    Ok(exit::OK)
}

fn snapshot(root: &Root, options: &SurveyOptions) -> OracleSnapshot {
    let (survey, sizings) = survey_with_sizings(root, options);
    survey_snapshot::from_survey(root, &survey, &sizings, None)
}

fn print(script: Script, names: &SqlNames) -> Result<()> {
    let settings = ScriptSettings {
        schema: names.schema.clone(),
        role: names.role.clone(),
        directory: names.directory.clone(),
        path: names.dir.clone(),
        synonyms: !names.no_synonyms,
    };
    io::stdout().write_all(scripts::render(script, &settings)?.as_bytes())?;
    Ok(())
}
