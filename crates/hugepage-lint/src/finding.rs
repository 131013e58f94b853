//! The rules and the findings about a PostgreSQL of a manifest.

use hugepage_assess::assessment::Severity;

use super::edit::TextEdit;
use super::yaml::LocatedNode;

/// A rule, by which CI systems tell findings apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LintRule {
    /// Fewer pages than shared memory takes.
    TooFewPages,
    /// No pages at all, and `huge_pages` is not off.
    NoPages,
    /// Pages of another size than PostgreSQL asks for.
    OtherPageSize,
    /// A request that differs from the limit, or a quantity that Kubernetes refuses.
    Refused,
    /// A limit that initdb's own server exceeds.
    Initdb,
    /// A limit of memory below the memory that counts to it.
    MemoryLimit,
    /// Many more pages than needed.
    Waste,
    /// Settings that the server refuses, or does not have.
    Settings,
    /// Facts that the files do not have.
    Unknown,
    /// `huge_pages = off`.
    Off,
}

/// A finding in a manifest.
#[derive(Debug)]
pub struct LintFinding {
    /// The rule of the finding.
    pub rule: LintRule,
    /// The severity of the finding.
    pub severity: Severity,
    /// The place of the finding in the files.
    pub place: LocatedNode,
    /// The text of the finding.
    pub message: String,
    /// The change that helps; `None` if nothing is known.
    pub hint: Option<String>,
    /// The hint as changes of the files.
    pub edits: Vec<TextEdit>,
}
