//! What can be found about a PostgreSQL of a manifest.

use hugepage_assess::assessment::Severity;

use super::edit::Edit;
use super::postgres::Found;

/// A rule, by which CI systems tell findings apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LintRule {
    /// Fewer pages than shared memory takes.
    TooFewPages,
    /// None at all, and `huge_pages` is not off.
    NoPages,
    /// Pages of another size than PostgreSQL asks for.
    OtherPageSize,
    /// A request that differs from the limit, or a quantity that Kubernetes refuses.
    Refused,
    /// A limit that initdb's own server exceeds.
    Initdb,
    /// A limit of memory below what counts to it.
    MemoryLimit,
    /// Many more pages than needed.
    Waste,
    /// Settings that the server refuses.
    Settings,
    /// Facts that the files do not have.
    Unknown,
    /// `huge_pages = off`.
    Off,
}

impl LintRule {
    /// All of them, with what each says.
    pub const ALL: [(Self, &'static str); 10] = [
        (Self::TooFewPages, "The huge pages of the manifest do not hold PostgreSQL's shared memory."),
        (Self::NoPages, "PostgreSQL asks for huge pages, and the manifest has none."),
        (Self::OtherPageSize, "PostgreSQL asks for huge pages of another size than the manifest has."),
        (Self::Refused, "Kubernetes refuses these resources."),
        (Self::Initdb, "initdb needs more huge pages than the limit allows."),
        (Self::MemoryLimit, "The limit of memory is below what counts to it."),
        (Self::Waste, "The manifest has at least twice the huge pages that PostgreSQL can use."),
        (Self::Settings, "The server refuses the settings."),
        (Self::Unknown, "The files do not say enough."),
        (Self::Off, "PostgreSQL uses base pages by choice."),
    ];

    /// The name of the rule.
    pub fn name(self) -> String {
        serde_json::to_value(self).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// One finding.
#[derive(Debug)]
pub struct LintFinding {
    /// The rule.
    pub rule: LintRule,
    /// How grave it is.
    pub severity: Severity,
    /// Where.
    pub place: Found,
    /// What is so.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// The hint as changes of the files.
    pub edits: Vec<Edit>,
}
