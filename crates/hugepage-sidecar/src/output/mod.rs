//! Output formats: tables for people, JSON and CSV for programs. Nothing is decided here.

pub mod rows;
pub mod table;

use clap::ValueEnum;

/// An output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for people, 80 columns wide; colour on a terminal only.
    #[default]
    Table,
    /// One JSON document.
    Json,
    /// Comma-separated values with a header line (RFC 4180), one line per instance.
    Csv,
}

/// Prints `document` as JSON.
pub fn json(document: &impl serde::Serialize) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string_pretty(document)?);
    Ok(())
}
