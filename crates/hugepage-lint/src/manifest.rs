//! The PostgreSQLs of manifests, by the kind of each document.

use std::rc::Rc;

use super::containers;
use super::fields::{Documents, name_of};
use super::node;
use super::operators;
use super::postgres::{ManifestForm, Postgres, Resources};
use super::settings::not_understood;
use super::words::{Mention, is_one_of, mention, names_server};
use super::yaml::{LocatedNode, YamlNode};

/// Kinds with a pod, and where it is.
const PODS: [(&str, &[&str]); 11] = [
    ("Pod", &["spec"]),
    ("PodTemplate", &["template", "spec"]),
    ("Deployment", &["spec", "template", "spec"]),
    ("StatefulSet", &["spec", "template", "spec"]),
    ("DaemonSet", &["spec", "template", "spec"]),
    ("ReplicaSet", &["spec", "template", "spec"]),
    ("ReplicationController", &["spec", "template", "spec"]),
    ("DeploymentConfig", &["spec", "template", "spec"]),
    ("Rollout", &["spec", "template", "spec"]),
    ("Job", &["spec", "template", "spec"]),
    ("CronJob", &["spec", "jobTemplate", "spec", "template", "spec"]),
];

/// Kinds that run no server, whatever they are named after. Others of an operator, such as its backups, have names that say so.
const NO_SERVERS: &str = "Service ConfigMap Secret PersistentVolumeClaim PersistentVolume StorageClass Namespace ServiceAccount Role \
    RoleBinding ClusterRole ClusterRoleBinding NetworkPolicy Ingress PodDisruptionBudget HorizontalPodAutoscaler \
    CustomResourceDefinition ServiceMonitor PodMonitor PrometheusRule Endpoints EndpointSlice LimitRange \
    ResourceQuota Certificate Issuer PriorityClass ImageCatalog ClusterImageCatalog Backup ScheduledBackup Pooler \
    Database DatabaseRole FailoverQuorum Publication Subscription PgUser OperatorConfiguration PostgresTeam PGAdmin \
    PGUpgrade PerconaPGBackup PerconaPGRestore PerconaPGUpgrade ExternalSecret SealedSecret ObjectStore ImageStream";

/// All PostgreSQLs, in the order of the documents.
pub fn postgreses(documents: &Documents) -> Vec<Postgres> {
    documents.iter().flat_map(|document| of_document(documents, document)).collect()
}

fn of_document(documents: &Documents, document: &LocatedNode) -> Vec<Postgres> {
    let group = document.node.text_at(&["apiVersion"]).unwrap_or_default().split('/').next().unwrap_or_default();
    let kind = document.node.text_at(&["kind"]).unwrap_or_default();
    if let Some(found) = operators::postgreses(documents, document, group, kind) {
        return found;
    }
    if let Some((_, path)) = PODS.iter().find(|(known, _)| *known == kind) {
        let pod = document.node.at(path);
        return pod.map(|pod| containers::of_pod(documents, document, pod)).unwrap_or_default();
    }
    let is_group_of_operator = mention(group) == Mention::Server;
    match is_one_of(NO_SERVERS, kind) || !(is_group_of_operator || mentions_server(&document.node)) {
        true => Vec::new(),
        false => vec![unread(document, kind)],
    }
}

/// A document that mentions PostgreSQL and is of no kind that is read.
fn unread(document: &LocatedNode, kind: &str) -> Postgres {
    let why = match kind {
        "" => "a document without a kind mentions PostgreSQL, and is no manifest".to_owned(),
        _ => format!("a document of the kind {kind} mentions PostgreSQL, and is not read"),
    };
    Postgres {
        form: ManifestForm::Other,
        name: name_of(&document.node),
        place: document.clone(),
        settings: not_understood(why),
        major: None,
        nonexistent: Vec::new(),
        resources: Resources::Unknown,
        default_page_size: Ok(node::USUAL_SIZE),
    }
}

/// Whether a value or, in a document without a kind, a key names a server.
fn mentions_server(document: &Rc<YamlNode>) -> bool {
    let kind = document.text_at(&["kind"]).unwrap_or_default();
    let names = |(key, value): &(Rc<YamlNode>, Rc<YamlNode>)| {
        let key = key.text().unwrap_or_default();
        let is_key = kind.is_empty() && (mention(key) == Mention::Server || key.contains("shared_buffers"));
        // The images of a Kustomization have names, and so have the components of a cluster of KubeBlocks.
        let key = if ["Kustomization", "Cluster"].contains(&kind) && key == "name" { "image" } else { key };
        is_key || value.text().is_some_and(|value| names_server(key, value))
    };
    // What a chart has is elsewhere, and these name it.
    let named: &[&[&str]] = match kind {
        "HelmRelease" | "Application" => &[&["metadata", "name"], &["spec", "chartRef", "name"]],
        "OCIRepository" => &[&["spec", "url"]],
        _ => &[],
    };
    let is_named = named.iter().filter_map(|path| document.text_at(path)).any(|name| mention(name) == Mention::Server);
    is_named || document.all_below().iter().any(|node| node.entries().iter().any(names))
}

/// The documents, with the items of a List, and the objects of a Template, for the document itself.
pub fn flatten(file: usize, document: &Rc<YamlNode>, into: &mut Vec<LocatedNode>) {
    let kind = document.text_at(&["kind"]).unwrap_or_default();
    let items = document.get("items").or_else(|| document.get("objects"));
    match items {
        Some(items) if kind.ends_with("List") || kind == "Template" => {
            into.extend(items.items().iter().map(|item| LocatedNode { file, node: Rc::clone(item) }));
        }
        _ => into.push(LocatedNode { file, node: Rc::clone(document) }),
    }
}
