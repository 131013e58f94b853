//! Judges Kubernetes manifests: the PostgreSQLs in them, the huge pages that each needs and gets, and the lines to change.
//!
//! Nothing here reads a file or runs a program: texts go in, and who can ask a server's program is an [`AskServer`].
//!
//! One direction: [`yaml`] reads text; [`manifest`] finds PostgreSQLs, whose [`settings`] are understood as a whole or not at
//! all, from [`containers`] and [`operators`]; [`need`] asks a server or estimates; [`judgement`] judges; [`edit`] shows.

mod command;
mod containers;
mod edit;
mod environment;
mod estimate;
mod fields;
mod finding;
mod image;
mod judge;
mod judgement;
mod landing;
mod limits;
mod manifest;
mod mounts;
mod need;
mod node;
mod operator_table;
mod operators;
mod options;
mod postgres;
mod quantity;
mod refusals;
mod setting_names;
mod settings;
mod shell;
mod words;
mod yaml;

use hugepage_assess::assessment::Severity;
use judgement::Judgement;
use need::NeedSource;
use postgres::Postgres;
use serde::Serialize;

pub use need::AskServer;

/// A file with manifests.
#[derive(Debug)]
pub struct SourceFile {
    /// The name of the file, as the user wrote it.
    pub name: String,
    /// The whole text of the file.
    pub text: String,
}

/// The findings in all files.
#[derive(Debug)]
pub struct Lint {
    files: Vec<SourceFile>,
    judged: Vec<(Postgres, Judgement)>,
}

/// A PostgreSQL as JSON. Sizes are in bytes; null is unknown.
#[derive(Debug, Serialize)]
pub struct PostgresRow {
    /// The name of the file, as the user wrote it.
    pub file: String,
    /// The line where the PostgreSQL begins.
    pub line: usize,
    /// The kind and the name of the object.
    pub name: String,
    /// The form of the manifest.
    pub form: postgres::ManifestForm,
    /// The major version of PostgreSQL; null if the manifest does not say it.
    pub major: Option<u32>,
    /// `ok`, `notice`, `warning`, `critical`, or `unknown`.
    pub verdict: String,
    /// `huge_pages`; null if the settings are unknown.
    pub huge_pages: Option<String>,
    /// The size of its huge pages; null if it is unknown.
    pub page_size: Option<u64>,
    /// `shared_buffers`.
    pub shared_buffers: Option<u64>,
    /// Shared memory, at least.
    pub shared_memory_least: Option<u64>,
    /// Shared memory, at most; null where a library may take more.
    pub shared_memory_most: Option<u64>,
    /// The least number of huge pages that the server needs; null if unknown.
    pub pages_needed_least: Option<u64>,
    /// The largest number of huge pages that the server needs; null where a library may take more.
    pub pages_needed_most: Option<u64>,
    /// `postgres -C of version 17`, or `estimated`.
    pub source: Option<String>,
    /// The limit `hugepages-...` of the container, in bytes; null if there is none.
    pub hugepages_limit: Option<u64>,
    /// The limit `hugepages-...` in whole pages.
    pub pages_limit: Option<u64>,
    /// The limit `memory` of the container, in bytes; null if there is none.
    pub memory_limit: Option<u64>,
    /// The outlook on a node with these pages: `hugetlb`, `base`, `fails`, `unknown`.
    pub outlook: String,
    /// The findings, the gravest first.
    pub findings: Vec<FindingRow>,
    /// The facts that could not be determined, and why.
    pub notes: Vec<String>,
}

/// A finding as JSON.
#[derive(Debug, Serialize)]
pub struct FindingRow {
    /// The rule of the finding.
    pub rule: finding::LintRule,
    /// The severity of the finding.
    pub severity: Severity,
    /// The file of the finding.
    pub file: String,
    /// The line in that file.
    pub line: usize,
    /// The column in the line.
    pub column: usize,
    /// The fault, in one sentence.
    pub message: String,
    /// The change that helps, in one sentence; null if none is known.
    pub hint: Option<String>,
}

/// An error of a file that is no YAML: its name, and the place in it.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {problem}{hint}")]
pub struct LintError {
    file: String,
    problem: yaml::YamlError,
    hint: &'static str,
}

/// Judges every PostgreSQL of `files`. The error names the file and the place of what could not be read.
pub fn lint(files: Vec<SourceFile>, servers: &mut dyn AskServer) -> Result<Lint, LintError> {
    let mut documents = Vec::new();
    for (number, file) in files.iter().enumerate() {
        let hint = if file.text.contains("{{") { "; render a template first, as helm template does" } else { "" };
        let unreadable = |problem| LintError { file: file.name.clone(), problem, hint };
        let read = yaml::documents(&file.text).map_err(unreadable)?;
        read.iter().for_each(|document| manifest::flatten(number, document, &mut documents));
    }
    let texts: Vec<_> = files.iter().map(|file| file.text.clone()).collect();
    let judge = |postgres: Postgres| {
        let judgement = judgement::judge(&postgres, servers, &texts);
        (postgres, judgement)
    };
    let judged = manifest::postgreses(&documents).into_iter().map(judge).collect();
    Ok(Lint { files, judged })
}

impl Lint {
    /// The worst severity; `None` if there is no PostgreSQL, or if nothing is worse than notice and something is unknown.
    pub fn worst(&self) -> Option<Severity> {
        let worst = self.judged.iter().map(|(_, judgement)| judgement.verdict()).max()?;
        let is_unknown = self.judged.iter().any(|(_, judgement)| judgement.is_unknown());
        (worst >= Severity::Warning || !is_unknown).then_some(worst)
    }

    /// The rows for people and programs.
    pub fn rows(&self) -> Vec<PostgresRow> {
        self.judged.iter().map(|(postgres, judgement)| self.row(postgres, judgement)).collect()
    }

    fn name(&self, file: usize) -> String {
        self.files.get(file).map(|file| file.name.clone()).unwrap_or_default()
    }

    fn row(&self, postgres: &Postgres, judgement: &Judgement) -> PostgresRow {
        let known = judgement.known.as_ref();
        let need = known.map(|known| &known.need);
        let pages = known.map(|known| known.need.pages(known.page_size));
        let is_bounded = need.is_some_and(|need| need.libraries.is_empty());
        let finding = |finding: &finding::LintFinding| FindingRow {
            rule: finding.rule,
            severity: finding.severity,
            file: self.name(finding.place.file),
            line: finding.place.node.line,
            column: finding.place.node.column,
            message: finding.message.clone(),
            hint: finding.hint.clone(),
        };
        let memory = postgres.resources.quantity("limits", "memory").and_then(|limit| limit.bytes);
        let limit = known.and_then(|known| Some((known.page_size, known.limit?)));
        PostgresRow {
            file: self.name(postgres.place.file),
            line: postgres.place.node.line,
            name: postgres.name.clone(),
            form: postgres.form,
            major: postgres.major,
            verdict: if judgement.is_unknown() { "unknown".to_owned() } else { judgement.verdict().to_string() },
            huge_pages: known.map(|known| known.requested.huge_pages.to_string()),
            page_size: known.map(|known| known.page_size.bytes().0),
            shared_buffers: known.map(|known| known.requested.shared_buffers.0),
            shared_memory_least: need.map(|need| need.least.0),
            shared_memory_most: need.filter(|_| is_bounded).map(|need| need.most.0),
            pages_needed_least: pages.map(|(least, _)| least.0),
            pages_needed_most: pages.filter(|_| is_bounded).map(|(_, most)| most.0),
            source: need.map(|need| match &need.source {
                NeedSource::Server(major) => format!("postgres -C of version {major}"),
                NeedSource::Estimate(why) => format!("estimated: {why}"),
            }),
            hugepages_limit: limit.map(|(_, limit)| limit.0),
            pages_limit: limit.map(|(size, limit)| size.pages_within(limit).0),
            memory_limit: memory.map(|memory| memory.0),
            outlook: known.map_or("unknown".to_owned(), |known| known.outlook.to_string()),
            findings: judgement.findings.iter().map(finding).collect(),
            notes: judgement.notes.clone(),
        }
    }

    /// All changes as one patch for `git apply` or `patch -p1`; empty if there are none.
    pub fn patch(&self) -> String {
        let edits = || self.judged.iter().flat_map(|(_, judgement)| &judgement.findings).flat_map(|found| &found.edits);
        let of_file = |(number, file): (usize, &SourceFile)| {
            let new = edit::apply(&file.text, edits().filter(|edit| edit.file == number));
            edit::patch(&file.name, &file.text, &new)
        };
        self.files.iter().enumerate().map(of_file).collect()
    }
}
