//! `lint`: whether the PostgreSQLs of Kubernetes manifests get the huge pages that they need.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use hugepage_assess::assessment::Severity;
use hugepage_kernel::{Bytes, PageSize};
use hugepage_lint::{Lint, PostgresRow, SourceFile, lint};

use crate::exit::{self, Exit};
use crate::output::stream::{complain, say};
use crate::output::{self, escape, table};
use crate::privileges::Needs;
use crate::server_program::installed::InstalledServers;

/// The longest file, in bytes; the API server takes objects of 1.5 MB.
const MAX_FILE: u64 = 8 << 20;

/// An output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LintFormat {
    /// Findings for people, and the patch.
    #[default]
    Table,
    /// One JSON document.
    Json,
    /// Only the patch, for `git apply` or `patch -p1`.
    Patch,
}

/// Options of `lint`.
#[derive(Clone, Debug, Args)]
pub struct LintOptions {
    /// Files of Kubernetes manifests; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The directory of the program postgres to ask, instead of the installed server of the manifest's major version
    #[arg(long, value_name = "DIR")]
    postgres: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: LintFormat,
}

impl LintOptions {
    pub fn needs(&self) -> Needs {
        Needs::default().servers()
    }
}

pub fn run(may_run: bool, options: &LintOptions) -> anyhow::Result<Exit> {
    let files = options.files.iter().map(|path| read(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut servers = InstalledServers::new(options.postgres.as_deref(), may_run);
    if let Some(why) = servers.error() {
        bail!("{why}");
    }
    let lint = lint(files, &mut servers)?;
    match options.format {
        LintFormat::Table => show(&lint),
        LintFormat::Json => {
            let patch = lint.patch();
            output::json(&serde_json::json!({"postgresql": lint.rows(), "patch": patch}))?;
        }
        LintFormat::Patch => {
            // As it is: a patch with other characters would not apply.
            let _ = output::stream::stdout().write_all(lint.patch().as_bytes());
        }
    }
    if lint.rows().is_empty() {
        complain!("hugepage-sidecar: found no PostgreSQL in these files");
    }
    Ok(match lint.worst() {
        Some(Severity::Critical) => exit::CRITICAL,
        Some(Severity::Warning) => exit::WARNING,
        Some(_) => exit::OK,
        None => exit::UNKNOWN,
    })
}

#[expect(clippy::disallowed_methods, reason = "a manifest that the command line names")]
fn read(path: &Path) -> anyhow::Result<SourceFile> {
    let is_input = path == Path::new("-");
    let name = if is_input { "standard-input.yaml".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    let read = match is_input {
        true => io::stdin().take(MAX_FILE + 1).read_to_end(&mut bytes),
        false => File::open(path).and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes)),
    };
    read.with_context(|| format!("could not read {name}"))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_FILE {
        bail!("{name} is longer than {}", Bytes(MAX_FILE));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(SourceFile { name, text }),
        Err(_) => bail!("{name} is not UTF-8"),
    }
}

fn show(lint: &Lint) {
    for (number, row) in lint.rows().iter().enumerate() {
        if number > 0 {
            say!();
        }
        show_row(row);
    }
    let patch = lint.patch();
    if !patch.is_empty() {
        say!("\n{}", escape::lines(patch.trim_end()));
    }
}

fn show_row(row: &PostgresRow) {
    say!("{}:{}: {}: {}", escape::line(&row.file), row.line, escape::line(&row.name), row.verdict);
    if let Some(size) = row.page_size.and_then(PageSize::new) {
        say!("{}", table::wrapped(&numbers(row, size), 2, 2));
    }
    for finding in &row.findings {
        let place = if finding.file == row.file { String::new() } else { format!("{}:", finding.file) };
        let hint = finding.hint.as_ref().map(|hint| format!(" {hint}")).unwrap_or_default();
        let text = format!("{} (line {place}{}): {}{hint}", finding.severity, finding.line, finding.message);
        say!("{}", table::wrapped(&text, 2, 4));
    }
    for note in &row.notes {
        say!("{}", table::wrapped(&format!("note: {note}"), 2, 4));
    }
}

/// The settings, the pages and the need of a server whose settings are known.
fn numbers(row: &PostgresRow, size: PageSize) -> String {
    let needed = match (row.pages_needed_least, row.pages_needed_most) {
        (Some(least), Some(most)) if least != most => format!("{least} to {most}"),
        (Some(least), Some(_)) => least.to_string(),
        (Some(least), None) => format!("at least {least}"),
        _ => "unknown".to_owned(),
    };
    let source = row.source.as_ref().map(|source| format!(" ({source})")).unwrap_or_default();
    let has = row.pages_limit.map_or("none".to_owned(), |pages| pages.to_string());
    let version = row.major.map(|major| format!("PostgreSQL {major}, ")).unwrap_or_default();
    format!(
        "{version}huge_pages = {}, shared_buffers = {}. Pages of {size}: {has}. Needed: {needed}{source}.",
        row.huge_pages.as_deref().unwrap_or("unknown"),
        row.shared_buffers.map_or("unknown".to_owned(), |size| Bytes(size).to_string()),
    )
}
