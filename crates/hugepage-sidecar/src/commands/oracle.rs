//! `oracle`: files for Oracle Database, and the SQL that reads them.
//!
//! ```text
//! $ hugepage-sidecar oracle columns
//! ### hugepage_status
//!
//! Huge pages of the Oracle instances of this host: one row per instance.
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | sid | VARCHAR2(64) | ORACLE_SID of an Oracle instance; data directory of a PostgreSQL server, truncated to 64 (home has the full path). |
//! | snapshot_utc | DATE | When the snapshot was taken, UTC. |
//! | age_seconds | NUMBER | Age of the snapshot in seconds. |
//! | this_instance | VARCHAR2(1) | Y for the instance of this session, otherwise N. |
//! ```

use std::io::{self, BufRead, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Subcommand;
use hugepage_host::decide;
use hugepage_kernel::Root;

use crate::commands::survey::{self, SurveyOptions};
use crate::exit::Exit;
use crate::oracle::scripts::{self, Script, ScriptSettings};
use crate::oracle::{OracleSnapshot, WriterOptions, survey_snapshot};
use crate::output::stdout;
use crate::privileges::Needs;

/// Commands for Oracle Database.
#[derive(Debug, Subcommand)]
pub enum OracleCommand {
    /// Write the files once; `watch --oracle-dir DIR` updates them continuously
    Write {
        /// A directory owned by root, without symbolic links in its path and not below ORACLE_BASE
        dir: PathBuf,
        #[command(flatten)]
        access: WriterOptions,
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
    /// Print the SQL*Plus script that creates all objects, or upgrades an older installation
    InstallSql(ScriptSettings),
    /// Print the SQL*Plus script that removes all objects
    UninstallSql(ScriptSettings),
    /// Print the columns of all views as Markdown
    Columns(ScriptSettings),
}

impl OracleCommand {
    /// The privileges that the command needs.
    pub fn needs(&self) -> Needs {
        match self {
            Self::Write { dir, .. } => Needs::default().directory(dir).owners(),
            _ => Needs::default(),
        }
    }
}

/// Runs the command.
pub fn run(root: &Root, command: &OracleCommand) -> Result<Exit> {
    match command {
        OracleCommand::Write {
            dir,
            access,
            records: true,
            ..
        } => {
            for line in io::stdin().lock().lines() {
                let snapshot_id = OracleSnapshot::from_json(&line?)?.write(dir, access)?;
                writeln!(stdout(), "{snapshot_id}")?;
            }
        }
        OracleCommand::Write {
            dir,
            access,
            survey,
            ..
        } => {
            snapshot(root, survey)?.write(dir, access)?;
        }
        OracleCommand::Print { file, survey, .. } => {
            let text = snapshot(root, survey)?
                .text(file)
                .with_context(|| format!("there is no file {file}"))?;
            stdout().write_all(text.as_bytes())?;
        }
        OracleCommand::InstallSql(names) => print(Script::Install, names)?,
        OracleCommand::UninstallSql(names) => print(Script::Uninstall, names)?,
        OracleCommand::Columns(names) => print(Script::Columns, names)?,
    }
    Ok(Exit::Ok)
}

fn snapshot(root: &Root, options: &SurveyOptions) -> Result<OracleSnapshot> {
    let survey = decide(
        &survey::snapshot(root, options, None, None)?,
        options.reserve_percent,
    );
    Ok(survey_snapshot::from_survey(
        &survey,
        &survey.sizings(),
        None,
    ))
}

fn print(script: Script, settings: &ScriptSettings) -> Result<()> {
    stdout().write_all(scripts::render(script, settings)?.as_bytes())?;
    Ok(())
}
