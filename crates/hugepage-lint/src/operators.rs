//! Custom resources: which fields say what, and what an operator sets where the manifest does not. The names are those of the
//! operators' definitions: CloudNativePG's `api/v1/cluster_types.go` and `pkg/postgres/configuration.go`, Crunchy's
//! `postgrescluster_types.go` and `huge_pages.go`, Zalando's `postgresql.crd.yaml` with Spilo's `configure_spilo.py`, and
//! StackGres' reference of SGCluster, SGInstanceProfile and SGPostgresConfig.

use std::rc::Rc;

use hugepage_kernel::Bytes;

use super::containers::major_of_image;
use super::fields::{Documents, name_of, settings_of};
use super::postgres::{LocatedNode, ManifestForm, Postgres, Resources};
use super::yaml::YamlNode;

/// Settings that an operator makes, without a place.
fn defaults(settings: &[(&str, &str)]) -> Vec<(String, String, Option<LocatedNode>)> {
    settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned(), None)).collect()
}

fn major(text: &str) -> Option<u32> {
    text.split('.').next()?.parse().ok()
}

/// CloudNativePG.
pub fn cloudnativepg(place: &LocatedNode) -> Option<Postgres> {
    let found = |node: &Rc<YamlNode>| LocatedNode { file: place.file, node: Rc::clone(node) };
    let spec = place.node.get("spec")?;
    let parameters = spec.at(&["postgresql", "parameters"]);
    let mut settings = defaults(&[("max_worker_processes", "32"), ("max_replication_slots", "32")]);
    settings.extend(settings_of(place.file, parameters));
    // A list of its own, which the operator adds to the libraries of managed extensions.
    let libraries = spec.at(&["postgresql", "shared_preload_libraries"]).map(|list| list.items()).unwrap_or_default();
    let libraries: Vec<_> = libraries.iter().filter_map(|name| name.text()).collect();
    let managed = ["pg_stat_statements", "auto_explain", "pgaudit", "pg_failover_slots"];
    let is_set = |library: &str| {
        let prefix = format!("{library}.");
        settings.iter().any(|(name, ..)| name.starts_with(&prefix))
    };
    let managed = managed.into_iter().filter(|library| is_set(library));
    let libraries: Vec<_> = libraries.iter().copied().chain(managed).collect();
    settings.push(("shared_preload_libraries".to_owned(), libraries.join(","), None));
    let image = spec.text_at(&["imageName"]).and_then(major_of_image);
    Some(Postgres {
        form: ManifestForm::Cloudnativepg,
        name: name_of(&place.node),
        place: found(&place.node),
        major: image.or_else(|| spec.text_at(&["imageCatalogRef", "major"]).and_then(major)),
        settings,
        settings_home: parameters.map(found),
        settings_unknown: None,
        max_connections_at_most: None,
        resources: Resources::Limits(found(spec)),
        wal_segment_mb: spec.text_at(&["bootstrap", "initdb", "walSegmentSize"]).and_then(|text| text.parse().ok()),
    })
}

/// Crunchy's operator: each set of instances.
pub fn pgo(place: &LocatedNode) -> Vec<Postgres> {
    let found = |node: &Rc<YamlNode>| LocatedNode { file: place.file, node: Rc::clone(node) };
    let Some(spec) = place.node.get("spec") else { return Vec::new() };
    let dynamic = spec.at(&["patroni", "dynamicConfiguration", "postgresql", "parameters"]);
    let own = spec.at(&["config", "parameters"]);
    let sets = spec.get("instances").map(|sets| sets.items()).unwrap_or_default();
    let all: Vec<_> = sets.iter().map(|set| Resources::Limits(found(set))).collect();
    // One set that has huge pages decides for all.
    let asks = all.iter().any(|resources| {
        let limits = resources.part("limits");
        let names = limits.iter().flat_map(|limits| limits.node.entries()).filter_map(|(key, _)| key.text());
        names.filter_map(super::quantity::page_size).count() > 0 && !resources.page_sizes().is_empty()
    });
    let of_set = |(set, resources): (&Rc<YamlNode>, Resources)| {
        let mut settings = defaults(&[("huge_pages", if asks { "try" } else { "off" })]);
        settings.extend(settings_of(place.file, dynamic));
        settings.extend(settings_of(place.file, own));
        // pgAudit is always loaded first.
        let others = settings.iter().rev().find(|(name, ..)| name == "shared_preload_libraries");
        let libraries = format!("pgaudit,{}", others.map(|(_, value, _)| value.as_str()).unwrap_or_default());
        settings.push(("shared_preload_libraries".to_owned(), libraries, None));
        let image = spec.text_at(&["image"]).and_then(major_of_image);
        Postgres {
            form: ManifestForm::Pgo,
            name: format!("{}, instances {}", name_of(&place.node), set.text_at(&["name"]).unwrap_or("00")),
            place: found(set),
            major: spec.text_at(&["postgresVersion"]).and_then(major).or(image),
            settings,
            settings_home: own.or(dynamic).map(found),
            settings_unknown: None,
            max_connections_at_most: None,
            resources,
            wal_segment_mb: None,
        }
    };
    sets.iter().zip(all).map(of_set).collect()
}

/// Zalando's operator with the image Spilo, which sizes a server by the limit of memory.
pub fn zalando(place: &LocatedNode) -> Option<Postgres> {
    let found = |node: &Rc<YamlNode>| LocatedNode { file: place.file, node: Rc::clone(node) };
    let spec = place.node.get("spec")?;
    let parameters = spec.at(&["postgresql", "parameters"]);
    let resources = Resources::Limits(found(spec));
    let memory = resources.quantity("limits", "memory").and_then(|limit| limit.bytes);
    let mut settings = defaults(&[
        ("max_replication_slots", "10"),
        ("shared_preload_libraries", "bg_mon,pg_stat_statements,pgextwlist,pg_auth_mon,set_user"),
    ]);
    // A fifth of the limit, and a connection for each 30 MB.
    if let Some(Bytes(memory)) = memory {
        let megabytes = memory >> 20;
        settings.extend(defaults(&[
            ("shared_buffers", &format!("{}MB", megabytes / 5)),
            ("max_connections", &(megabytes / 30).clamp(100, 1000).to_string()),
        ]));
    }
    settings.extend(settings_of(place.file, parameters));
    let is_set = |name: &str| settings.iter().any(|(found, ..)| found == name);
    let settings_unknown = (!is_set("shared_buffers"))
        .then(|| "Spilo sets shared_buffers to a fifth of the node's memory where there is no memory limit".to_owned());
    Some(Postgres {
        form: ManifestForm::Zalando,
        name: name_of(&place.node),
        place: found(&place.node),
        major: spec.text_at(&["postgresql", "version"]).and_then(major),
        max_connections_at_most: (!is_set("max_connections")).then_some(1000),
        settings,
        settings_home: parameters.map(found),
        settings_unknown,
        resources,
        wal_segment_mb: None,
    })
}

/// StackGres: the profile and the configuration are documents of their own.
pub fn stackgres(place: &LocatedNode, documents: &Documents) -> Option<Postgres> {
    let found = |node: &Rc<YamlNode>| LocatedNode { file: place.file, node: Rc::clone(node) };
    let spec = place.node.get("spec")?;
    let namespace = |document: &Rc<YamlNode>| document.text_at(&["metadata", "namespace"]).map(str::to_owned);
    let named = |kind: &str, name: Option<&str>| {
        let (file, document) = documents.iter().find(|(_, document)| {
            document.text_at(&["kind"]) == Some(kind)
                && document.text_at(&["metadata", "name"]) == name
                && namespace(document) == namespace(&place.node)
        })?;
        Some(LocatedNode { file: *file, node: Rc::clone(document.get("spec")?) })
    };
    let profile_name = spec.text_at(&["sgInstanceProfile"]);
    let config_name = spec.text_at(&["configurations", "sgPostgresConfig"]);
    let resources = match profile_name.and_then(|name| named("SGInstanceProfile", Some(name))) {
        Some(profile) => Resources::Single(profile),
        None => Resources::Elsewhere(match profile_name {
            Some(name) => format!("SGInstanceProfile {name} is in none of the files"),
            None => "sgInstanceProfile is not set: StackGres generates one without huge pages".to_owned(),
        }),
    };
    let config = config_name.and_then(|name| named("SGPostgresConfig", Some(name)));
    let parameters = config.as_ref().and_then(|config| config.node.get("postgresql.conf"));
    let settings_unknown = config.is_none().then(|| match config_name {
        Some(name) => format!("SGPostgresConfig {name} is in none of the files"),
        None => "sgPostgresConfig is not set: StackGres generates one".to_owned(),
    });
    let file = config.as_ref().map_or(place.file, |config| config.file);
    Some(Postgres {
        form: ManifestForm::Stackgres,
        name: name_of(&place.node),
        place: found(&place.node),
        major: spec.text_at(&["postgres", "version"]).and_then(major),
        settings: settings_of(file, parameters),
        settings_home: parameters.map(|node| LocatedNode { file, node: Rc::clone(node) }),
        settings_unknown,
        max_connections_at_most: None,
        resources,
        wal_segment_mb: None,
    })
}
