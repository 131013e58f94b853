//! Fields that every manifest has in one form, and documents that name each other.

use std::rc::Rc;

use super::settings::{NotUnderstood, Setting, not_understood};
use super::yaml::{LocatedNode, YamlNode};

/// Documents of all files, with the number of the file of each.
pub type Documents = [LocatedNode];

/// `Cluster db`.
pub fn name_of(document: &Rc<YamlNode>) -> String {
    match (document.text_at(&["kind"]), document.text_at(&["metadata", "name"])) {
        (None, _) => "a document".to_owned(),
        (Some(kind), name) => format!("{kind} {}", name.unwrap_or("?")),
    }
}

/// The entries of a mapping as settings.
pub fn settings_of(parent: &LocatedNode, node: Option<&Rc<YamlNode>>) -> Result<Vec<Setting>, NotUnderstood> {
    let entries = node.map(|node| node.entries()).unwrap_or_default().iter();
    let entries = entries.filter(|(key, _)| key.text() != Some("<<"));
    let setting = |(key, value): &(Rc<YamlNode>, Rc<YamlNode>)| match (key.text(), value.text()) {
        (Some(name), Some(text)) => Ok(Setting::of_manifest(name, text, parent.beside(value))),
        _ => not_understood(format!("line {} has a setting that is no text", key.line)),
    };
    entries.map(setting).collect()
}

/// Refuses values that are not strings where Kubernetes accepts no others.
pub fn only_strings(settings: &[Setting]) -> Result<(), NotUnderstood> {
    let is_string = |setting: &&Setting| setting.place.as_ref().is_none_or(|place| place.node.is_string);
    match settings.iter().find(|setting| !is_string(setting)) {
        Some(other) => not_understood(format!("Kubernetes refuses {}: {} without quotes", other.name, other.value)),
        None => Ok(()),
    }
}

/// The document of this kind and name in the namespace of another document; `None` if there is none, or there are two.
pub fn document_beside(documents: &Documents, of: &LocatedNode, kind: &str, name: &str) -> Option<LocatedNode> {
    let namespace = |document: &Rc<YamlNode>| document.text_at(&["metadata", "namespace"]).map(str::to_owned);
    let is_it = |found: &&LocatedNode| {
        found.node.text_at(&["kind"]) == Some(kind)
            && found.node.text_at(&["metadata", "name"]) == Some(name)
            && namespace(&found.node) == namespace(&of.node)
    };
    let mut found = documents.iter().filter(is_it);
    found.next().filter(|_| found.next().is_none()).cloned()
}
