//! The environment of a container, as far as the files say it.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::fields::{Documents, document_beside};
use super::options::Argument;
use super::settings::{NotUnderstood, not_understood};
use super::yaml::{LocatedNode, YamlNode};

/// The variables of a container.
#[derive(Debug, Default)]
pub struct Environment {
    /// Names with their values; `None` for a value that the files do not have.
    values: BTreeMap<String, Option<String>>,
    /// The first source of variables whose names are unknown.
    unknown_source: Option<String>,
}

impl Environment {
    /// The variables of `container`, with the ConfigMaps and Secrets among the documents.
    pub fn of_container(
        documents: &Documents,
        document: &LocatedNode,
        container: &Rc<YamlNode>,
    ) -> Result<Self, NotUnderstood> {
        let mut environment = Self::default();
        for source in container.get("envFrom").map(|sources| sources.items()).unwrap_or_default() {
            environment.add_source(documents, document, source);
        }
        for variable in container.get("env").map(|all| all.items()).unwrap_or_default() {
            let name = variable.text_at(&["name"]).unwrap_or_default();
            let value = match (variable.get("value"), variable.at(&["valueFrom", "configMapKeyRef"])) {
                (Some(value), _) if !value.is_string && value.text() != Some("") => {
                    return not_understood(format!("Kubernetes refuses the value of {name} without quotes"));
                }
                // A value with another variable in it is not followed.
                (Some(value), _) => value.text().filter(|text| !text.contains("$(")).map(str::to_owned),
                (None, Some(reference)) => of_reference(documents, document, reference),
                (None, None) if variable.get("valueFrom").is_some() => None,
                (None, None) => Some(String::new()),
            };
            environment.values.insert(name.to_owned(), value);
        }
        Ok(environment)
    }

    fn add_source(&mut self, documents: &Documents, document: &LocatedNode, source: &Rc<YamlNode>) {
        let prefix = source.text_at(&["prefix"]).unwrap_or_default();
        let kinds = [("configMapRef", "ConfigMap"), ("secretRef", "Secret")];
        let (key, kind) = kinds.into_iter().find(|(key, _)| source.get(key).is_some()).unwrap_or(("", ""));
        let name = source.text_at(&[key, "name"]).unwrap_or("?");
        let Some(found) = document_beside(documents, document, kind, name) else {
            self.unknown_source
                .get_or_insert_with(|| format!("{kind} {name} gives it variables and is not in the files"));
            return;
        };
        for part in ["data", "stringData"] {
            for (key, value) in found.node.get(part).map(|values| values.entries()).unwrap_or_default() {
                let Some(key) = key.text() else { continue };
                // A Secret's data are encoded.
                let text = value.text().filter(|_| kind == "ConfigMap" || part == "stringData").map(str::to_owned);
                self.values.insert(format!("{prefix}{key}"), text);
            }
        }
    }

    /// The value of a variable; `None` if it is not set.
    pub fn get(&self, name: &str) -> Result<Option<&str>, NotUnderstood> {
        match (self.values.get(name), &self.unknown_source) {
            (Some(Some(value)), _) => Ok(Some(value)),
            (Some(None), _) => not_understood(format!("the files do not have the value of the variable {name}")),
            (None, Some(why)) => not_understood(why),
            (None, None) => Ok(None),
        }
    }

    /// The words of a list, with `$(NAME)` replaced as Kubernetes does.
    pub fn words(&self, place: &LocatedNode, list: Option<&Rc<YamlNode>>) -> Result<Vec<Argument>, NotUnderstood> {
        let items = list.map(|list| list.items()).unwrap_or_default();
        if list.is_some_and(|list| list.text().is_some_and(|text| !text.is_empty())) {
            return not_understood("its command is not a list");
        }
        let word = |item: &Rc<YamlNode>| match item.text() {
            Some(text) if item.is_string || text.is_empty() => {
                Ok(Argument { text: self.expand(text)?, place: place.beside(item) })
            }
            Some(text) => not_understood(format!("Kubernetes refuses the argument {text} without quotes")),
            None => not_understood("an argument of the container is no text"),
        };
        items.iter().map(word).collect()
    }

    fn expand(&self, text: &str) -> Result<String, NotUnderstood> {
        let (mut expanded, mut rest) = (String::new(), text);
        while let Some(at) = rest.find('$') {
            let (before, from) = rest.split_at(at);
            expanded += before;
            let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
            let name = from.strip_prefix("$(").and_then(|inner| inner.split_once(')'));
            let name = name.filter(|(name, _)| is_name(name));
            match (from.strip_prefix("$$"), name) {
                (Some(after), _) => {
                    expanded.push('$');
                    rest = after;
                }
                (None, Some((name, after))) => {
                    // What is not set stays as it is.
                    match self.get(name)? {
                        Some(value) => expanded += value,
                        None => expanded += &format!("$({name})"),
                    }
                    rest = after;
                }
                (None, None) => {
                    expanded.push('$');
                    rest = &from[1..];
                }
            }
        }
        Ok(expanded + rest)
    }
}

fn of_reference(documents: &Documents, document: &LocatedNode, reference: &Rc<YamlNode>) -> Option<String> {
    let map = document_beside(documents, document, "ConfigMap", reference.text_at(&["name"])?)?;
    map.node.text_at(&["data", reference.text_at(&["key"])?]).map(str::to_owned)
}
