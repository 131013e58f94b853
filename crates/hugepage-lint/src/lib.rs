//! Judges Kubernetes manifests: the PostgreSQLs in them, the huge pages that each needs and gets, and the lines to change.
//!
//! Nothing here reads a file or runs a program: texts go in, and who can ask a server's program is an [`AskServer`].
//!
//! One direction: [`yaml`] reads text, [`containers`] and [`operators`] find PostgreSQLs, [`need`] asks a server or estimates,
//! [`judgement`] judges, [`edit`] and [`sarif`] show.

mod containers;
mod edit;
mod estimate;
mod fields;
mod finding;
mod judgement;
mod landing;
mod limits;
mod manifest;
mod need;
mod operators;
mod postgres;
mod quantity;
mod refusals;
pub mod sarif;
mod work;
mod yaml;

use hugepage_assess::assessment::Severity;
use judgement::Judgement;
use need::Source;
use postgres::Postgres;
use serde::Serialize;

pub use need::AskServer;

/// A file with manifests.
#[derive(Debug)]
pub struct SourceFile {
    /// As the user names it.
    pub name: String,
    /// All of it.
    pub text: String,
}

/// What was found in all files.
#[derive(Debug)]
pub struct Lint {
    files: Vec<SourceFile>,
    judged: Vec<(Postgres, Judgement)>,
}

/// One PostgreSQL as JSON. Sizes are in bytes; null is unknown.
#[derive(Debug, Serialize)]
pub struct PostgresRow {
    /// The file, as the user names it.
    pub file: String,
    /// The line where it begins.
    pub line: usize,
    /// The kind and the name of the object.
    pub name: String,
    /// What the manifest is written for.
    pub form: postgres::Form,
    /// The major version of PostgreSQL; null if the manifest does not say it.
    pub major: Option<u32>,
    /// `ok`, `notice`, `warning`, `critical`, or `unknown`.
    pub verdict: String,
    /// `huge_pages`.
    pub huge_pages: String,
    /// The size of its huge pages.
    pub page_size: u64,
    /// `shared_buffers`.
    pub shared_buffers: Option<u64>,
    /// Shared memory, at least.
    pub shared_memory_least: Option<u64>,
    /// Shared memory, at most; null where a library may take more.
    pub shared_memory_most: Option<u64>,
    /// Huge pages that it needs, at least.
    pub pages_needed_least: Option<u64>,
    /// Huge pages that it needs, at most; null where a library may take more.
    pub pages_needed_most: Option<u64>,
    /// `postgres -C of version 17`, or `estimated`.
    pub source: Option<String>,
    /// The limit `hugepages-...` of its container.
    pub hugepages_limit: Option<u64>,
    /// The limit `hugepages-...` in whole pages.
    pub pages_limit: Option<u64>,
    /// The limit `memory` of its container.
    pub memory_limit: Option<u64>,
    /// `hugetlb`, `base`, `fails`, `unknown`: on a node with these pages.
    pub outlook: String,
    /// What was found.
    pub findings: Vec<FindingRow>,
    /// What could not be determined, and why.
    pub notes: Vec<String>,
}

/// One finding as JSON.
#[derive(Debug, Serialize)]
pub struct FindingRow {
    /// The rule.
    pub rule: finding::LintRule,
    /// How severe it is.
    pub severity: Severity,
    /// The file.
    pub file: String,
    /// The line in it.
    pub line: usize,
    /// The column in the line.
    pub column: usize,
    /// One sentence on what is wrong.
    pub message: String,
    /// One sentence on what to do; null if nothing is known.
    pub hint: Option<String>,
}

/// A file that is no YAML: its name, and the place in it.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct LintError {
    file: String,
    problem: yaml::YamlError,
}

/// Judges every PostgreSQL of `files`. The error names the file and the place of what could not be read.
pub fn lint(files: Vec<SourceFile>, servers: &mut dyn AskServer) -> Result<Lint, LintError> {
    let mut documents = Vec::new();
    for (number, file) in files.iter().enumerate() {
        let unreadable = |problem| LintError { file: file.name.clone(), problem };
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
        let need = judgement.need.as_ref();
        let pages = need.map(|need| need.pages(judgement.page_size));
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
        PostgresRow {
            file: self.name(postgres.place.file),
            line: postgres.place.node.line,
            name: postgres.name.clone(),
            form: postgres.form,
            major: postgres.major,
            verdict: if judgement.is_unknown() { "unknown".to_owned() } else { judgement.verdict().to_string() },
            huge_pages: judgement.asked.huge_pages.to_string(),
            page_size: judgement.page_size.bytes().0,
            shared_buffers: need.map(|_| judgement.asked.shared_buffers.0),
            shared_memory_least: need.map(|need| need.least.0),
            shared_memory_most: need.filter(|need| need.libraries.is_empty()).map(|need| need.most.0),
            pages_needed_least: pages.map(|(least, _)| least.0),
            pages_needed_most: pages
                .filter(|_| need.is_some_and(|need| need.libraries.is_empty()))
                .map(|(_, most)| most.0),
            source: need.map(|need| match &need.source {
                Source::Server(major) => format!("postgres -C of version {major}"),
                Source::Estimate(why) => format!("estimated: {why}"),
            }),
            hugepages_limit: judgement.limit.map(|limit| limit.0),
            pages_limit: judgement.limit.map(|limit| judgement.page_size.pages_within(limit).0),
            memory_limit: memory.map(|memory| memory.0),
            outlook: judgement.outlook.to_string(),
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
