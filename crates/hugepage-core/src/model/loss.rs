//! What a start lost against the one before.

/// What a start lost against the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// When it started, for people: `2026-11-21 10:00:00 UTC`.
    pub at: String,
    /// What it was.
    pub lost: Lost,
}

/// What was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// "was in huge pages of 2 MB, is in 4 kB pages".
    pub what: String,
    /// Whether only the next start would lose it, so that it can be mended while the server runs.
    pub only_outlook: bool,
}
