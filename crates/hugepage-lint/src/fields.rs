//! Fields that every manifest has in one form.

use std::rc::Rc;

use super::postgres::LocatedNode;
use super::yaml::YamlNode;

/// Documents of all files, with the number of the file of each.
pub type Documents = [(usize, Rc<YamlNode>)];

/// `Cluster db`.
pub fn name_of(document: &Rc<YamlNode>) -> String {
    let text = |path: &[&str]| document.text_at(path).unwrap_or("?").to_owned();
    format!("{} {}", text(&["kind"]), text(&["metadata", "name"]))
}

/// The entries of a mapping as settings.
pub fn settings_of(file: usize, node: Option<&Rc<YamlNode>>) -> Vec<(String, String, Option<LocatedNode>)> {
    let entries = node.map(|node| node.entries()).unwrap_or_default().iter();
    let settings = entries.filter_map(|(key, value)| {
        let place = LocatedNode { file, node: Rc::clone(value) };
        Some((key.text()?.to_ascii_lowercase(), value.text()?.to_owned(), Some(place)))
    });
    settings.collect()
}
