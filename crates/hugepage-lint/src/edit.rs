//! Changes of a manifest that leave all other characters as they are, and the patch that makes them.

use std::ops::Range;

use hugepage_kernel::PageSize;
use similar::TextDiff;

use super::postgres::Resources;
use super::quantity;
use super::yaml::{LocatedNode, YamlContent};

/// A part of a file with the text in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextEdit {
    /// The number of the file.
    pub file: usize,
    /// The bytes that are replaced; empty for an insertion.
    pub range: Range<usize>,
    /// The new text.
    pub text: String,
}

/// The text that an edit inserts.
#[derive(Clone, Debug)]
pub enum Insertion {
    /// A scalar that needs no quotes.
    Text(String),
    /// Keys and values.
    Map(Vec<(String, Insertion)>),
}

impl Insertion {
    /// A mapping of one key.
    pub fn key(key: &str, value: Self) -> Self {
        Self::Map(vec![(key.to_owned(), value)])
    }

    fn block(&self, indent: usize, newline: &str) -> String {
        match self {
            Self::Text(text) => format!(" {text}"),
            Self::Map(entries) => {
                let lines = entries.iter().map(|(key, value)| {
                    format!("{newline}{}{key}:{}", " ".repeat(indent), value.block(indent + 2, newline))
                });
                lines.collect()
            }
        }
    }

    fn flow(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| format!("{key}: {}", value.flow()));
                format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Replaces the text of a scalar, in its quotes. `None` if the scalar is not written on one line as it reads.
pub fn replace(text: &str, found: &LocatedNode, new: &str) -> Option<TextEdit> {
    let (node, old) = (&found.node, found.node.text()?);
    let written = text.get(node.range.clone())?;
    let quote = written.chars().next().filter(|c| matches!(c, '"' | '\'')).map(String::from).unwrap_or_default();
    // A plain scalar may be followed by blanks within its range.
    let is_plain = written.trim_end() == format!("{quote}{old}{quote}") && !old.is_empty();
    let range = node.range.start..node.range.start + written.trim_end().len();
    is_plain.then(|| TextEdit { file: found.file, range, text: format!("{quote}{new}{quote}") })
}

/// A new first entry of a mapping. `None` if the mapping is written in a way that this does not know.
pub fn insert(text: &str, found: &LocatedNode, key: &str, value: &Insertion) -> Option<TextEdit> {
    let YamlContent::Mapping(entries) = &found.node.value else { return None };
    let insert_at = |at: usize, text: String| Some(TextEdit { file: found.file, range: at..at, text });
    if text.get(found.node.range.clone())?.starts_with('{') {
        let separator = if entries.is_empty() { "" } else { ", " };
        return insert_at(found.node.range.start + 1, format!("{key}: {}{separator}", value.flow()));
    }
    let first = entries.first()?.0.range.start;
    let line = text.get(..first)?.rfind('\n').map_or(0, |newline| newline + 1);
    let before = text.get(line..first)?;
    if !before.chars().all(|c| matches!(c, ' ' | '-')) {
        return None;
    }
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let indent = before.len();
    let entry = format!("{key}:{}", value.block(indent + 2, newline));
    insert_at(first, format!("{entry}{newline}{}", " ".repeat(indent)))
}

/// Edits the resources to this quantity of huge pages. `None` if they cannot be written so.
pub fn huge_pages(
    text: &str,
    resources: &Resources,
    size: PageSize,
    new: &str,
    adds_memory: bool,
) -> Option<Vec<TextEdit>> {
    let name = quantity::resource(size);
    let leaf = || Insertion::Text(new.to_owned());
    let mut edits = Vec::new();
    let mut has_limit = false;
    for part in ["limits", "requests"] {
        if let Some(old) = resources.quantity(part, &name) {
            has_limit |= part == "limits";
            if old.bytes != quantity::bytes(new) {
                edits.push(replace(text, &old.place, new)?);
            }
        }
    }
    let Resources::Container { home, .. } = resources else { return None };
    if has_limit {
        return Some(dedup(edits));
    }
    let existing = resources.part("limits");
    edits.push(match (existing, home.node.get("resources")) {
        (Some(part), _) => insert(text, &part, &name, &leaf())?,
        (None, Some(parts)) => insert(text, &home.beside(parts), "limits", &Insertion::key(&name, leaf()))?,
        (None, None) => {
            let mut parts = vec![("limits".to_owned(), Insertion::key(&name, leaf()))];
            if adds_memory {
                // Kubernetes accepts huge pages only beside memory or processors.
                parts.push(("requests".to_owned(), Insertion::key("memory", Insertion::Text("1Gi".to_owned()))));
            }
            insert(text, home, "resources", &Insertion::Map(parts))?
        }
    });
    Some(dedup(edits))
}

/// Removes repeated edits: an alias makes a limit and a request the same place.
fn dedup(mut edits: Vec<TextEdit>) -> Vec<TextEdit> {
    edits.dedup();
    edits
}

/// The text with all edits; of two at one place the first is made.
pub fn apply<'a>(text: &str, edits: impl Iterator<Item = &'a TextEdit>) -> String {
    let mut edits: Vec<_> = edits.collect();
    edits.sort_by_key(|edit| edit.range.start);
    let (mut new, mut end) = (String::with_capacity(text.len() + 256), 0);
    let mut last: Option<&TextEdit> = None;
    for edit in edits {
        if edit.range.start < end || last == Some(edit) {
            continue;
        }
        new += text.get(end..edit.range.start).unwrap_or_default();
        new += &edit.text;
        end = edit.range.end;
        last = Some(edit);
    }
    new + text.get(end..).unwrap_or_default()
}

/// The unified difference of a file, as git writes it. Empty if there is none.
pub fn patch(path: &str, old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let path = path.trim_start_matches("./").trim_start_matches('/');
    let (before, after) = (format!("a/{path}"), format!("b/{path}"));
    TextDiff::from_lines(old, new).unified_diff().context_radius(3).header(&before, &after).to_string()
}
