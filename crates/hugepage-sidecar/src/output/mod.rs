//! Output formats: tables for people, JSON and CSV for programs. Nothing is decided here.

pub mod rows;
pub mod stream;
pub mod table;

pub use hugepage_host::escape;

use clap::ValueEnum;

use crate::output::stream::say;

/// An output format, of all but `status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for people, 80 columns wide; colour on a terminal only.
    #[default]
    Table,
    /// One JSON document.
    Json,
}

/// Prints `document` as JSON.
pub fn json(document: &impl serde::Serialize) -> anyhow::Result<()> {
    say!("{}", json_text(document)?);
    Ok(())
}

/// `document` as JSON that a terminal can show.
pub fn json_text(document: &impl serde::Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string_pretty(document)?;
    Ok(escape::json(&text).into_owned())
}
