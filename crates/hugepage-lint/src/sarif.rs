//! SARIF 2.1.0 (OASIS), which CI systems show beside the lines of a change.

use hugepage_assess::assessment::Severity;
use serde_json::{Value, json};

use super::Lint;
use super::edit::TextEdit;
use super::finding::{LintFinding, LintRule};

/// The SARIF document: one run with all findings.
pub fn document(lint: &Lint) -> Value {
    let rules = LintRule::ALL.map(|(rule, text)| json!({"id": rule.name(), "shortDescription": {"text": text}}));
    let results: Vec<_> = lint
        .judged
        .iter()
        .flat_map(|(postgres, judgement)| judgement.findings.iter().map(move |finding| (postgres, finding)))
        .map(|(postgres, finding)| result(lint, &postgres.name, finding))
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "hugepage-sidecar",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn result(lint: &Lint, name: &str, finding: &LintFinding) -> Value {
    let level = match finding.severity {
        Severity::Critical => "error",
        Severity::Warning => "warning",
        Severity::Notice | Severity::Ok => "note",
    };
    let hint = finding.hint.as_ref().map(|hint| format!(" {hint}")).unwrap_or_default();
    let node = &finding.place.node;
    let mut result = json!({
        "ruleId": finding.rule.name(),
        "level": level,
        "message": {"text": format!("{name}: {}{hint}", finding.message)},
        "locations": [{"physicalLocation": {
            "artifactLocation": {"uri": uri(&lint.name(finding.place.file))},
            "region": {"startLine": node.line, "startColumn": node.column},
        }}],
    });
    if let (Some(first), Some(hint)) = (finding.edits.first(), &finding.hint) {
        let replacements: Vec<_> = finding.edits.iter().map(|edit| replacement(lint, edit)).collect();
        result["fixes"] = json!([{
            "description": {"text": hint},
            "artifactChanges": [{
                "artifactLocation": {"uri": uri(&lint.name(first.file))},
                "replacements": replacements,
            }],
        }]);
    }
    result
}

fn replacement(lint: &Lint, edit: &TextEdit) -> Value {
    let text = lint.files.get(edit.file).map(|file| file.text.as_str()).unwrap_or_default();
    let place = |offset: usize| {
        let before = text.get(..offset).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        (before.matches('\n').count() + 1, line.chars().count() + 1)
    };
    let ((line, column), (end_line, end_column)) = (place(edit.range.start), place(edit.range.end));
    json!({
        "deletedRegion": {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column},
        "insertedContent": {"text": edit.text},
    })
}

/// A path as a relative reference (RFC 3986).
fn uri(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.trim_start_matches("./").bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(char::from(byte)),
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    uri
}
