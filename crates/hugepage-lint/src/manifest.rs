//! The PostgreSQLs of manifests, by the kind of each document.

use std::rc::Rc;

use super::containers::containers;
use super::fields::Documents;
use super::operators;
use super::postgres::{LocatedNode, Postgres};
use super::yaml::YamlNode;

/// All PostgreSQLs, in the order of the documents.
pub fn postgreses(documents: &Documents) -> Vec<Postgres> {
    let mut all = Vec::new();
    for (file, document) in documents {
        let place = LocatedNode { file: *file, node: Rc::clone(document) };
        let group = document.text_at(&["apiVersion"]).unwrap_or_default().split('/').next().unwrap_or_default();
        let kind = document.text_at(&["kind"]).unwrap_or_default();
        match (group, kind) {
            ("postgresql.cnpg.io", "Cluster") => all.extend(operators::cloudnativepg(&place)),
            ("postgres-operator.crunchydata.com", "PostgresCluster") => all.extend(operators::pgo(&place)),
            ("acid.zalan.do", "postgresql") => all.extend(operators::zalando(&place)),
            ("stackgres.io", "SGCluster") => all.extend(operators::stackgres(&place, documents)),
            ("v1", "Pod") => all.extend(containers(&place, &["spec"])),
            ("apps" | "batch", _) => all.extend(containers(&place, &["spec", "template", "spec"])),
            _ => {}
        }
    }
    all
}

/// The documents, with the items of a List for the list.
pub fn flatten(file: usize, document: &Rc<YamlNode>, into: &mut Vec<(usize, Rc<YamlNode>)>) {
    match (document.text_at(&["kind"]), document.get("items")) {
        (Some("List"), Some(items)) => into.extend(items.items().iter().map(|item| (file, Rc::clone(item)))),
        _ => into.push((file, Rc::clone(document))),
    }
}
