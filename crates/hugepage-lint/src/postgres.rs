//! One PostgreSQL of a manifest: what it asks of the kernel and of Kubernetes, and where the manifest says so.

use std::rc::Rc;

use hugepage_assess::model::{Requested, requested_by_settings};
use hugepage_kernel::postgresql::postgresql_conf::Configuration;
use hugepage_kernel::{Bytes, Notes, PageSize};

use super::quantity;
use super::yaml::YamlNode;

/// The size that PostgreSQL asks for with `huge_page_size = 0` on x86-64 and on ARM with pages of 4 kB, unless the node boots
/// with another default_hugepagesz.
pub const USUAL_SIZE: PageSize = PageSize::new(2 << 20).unwrap();

/// The kind of manifest, which decides who checks it and what else is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ManifestForm {
    /// A container of a Pod, or of the template of a Deployment, StatefulSet or the like.
    Pod,
    /// CloudNativePG's Cluster.
    Cloudnativepg,
    /// Crunchy's PostgresCluster, one set of instances.
    Pgo,
    /// Zalando's postgresql.
    Zalando,
    /// StackGres' SGCluster with its profile and configuration.
    Stackgres,
}

/// A YAML value with the file that it is in.
#[derive(Clone, Debug)]
pub struct LocatedNode {
    /// The number of the file.
    pub file: usize,
    /// The node of the value.
    pub node: Rc<YamlNode>,
}

/// The form in which a manifest states resources.
#[derive(Clone, Debug)]
pub enum Resources {
    /// The mapping that has `resources: {requests, limits}`, or to which they can be added.
    Limits(LocatedNode),
    /// The mapping whose `hugePages` has one mapping of `hugepages-…` for both (StackGres).
    Single(LocatedNode),
    /// The resources are in a document that was not given.
    Elsewhere(String),
}

/// A PostgreSQL server of a manifest.
#[derive(Debug)]
pub struct Postgres {
    /// The kind of manifest.
    pub form: ManifestForm,
    /// `Cluster db`, `Deployment db, container postgres`.
    pub name: String,
    /// The value at which the server begins in the manifest.
    pub place: LocatedNode,
    /// The major version; `None` if the manifest does not say it.
    pub major: Option<u32>,
    /// Settings in the order in which they count, the operator's own defaults first; the last one of a name is effective.
    pub settings: Vec<(String, String, Option<LocatedNode>)>,
    /// The mapping that settings can be added to.
    pub settings_home: Option<LocatedNode>,
    /// The reason why some settings are unknown; `None` if all are known.
    pub settings_unknown: Option<String>,
    /// The operator's own `max_connections` where the manifest has none and it is not known: at most this.
    pub max_connections_at_most: Option<u32>,
    /// The resources of the container.
    pub resources: Resources,
    /// `wal_segment_size` in MB, if the manifest sets it for initdb.
    pub wal_segment_mb: Option<u32>,
}

impl Postgres {
    /// The effective value of a setting.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings.iter().rev().find(|(found, ..)| found == name).map(|(_, value, _)| value.as_str())
    }

    /// The place of the effective value of a setting; `None` if no file has it.
    pub fn place_of(&self, name: &str) -> Option<&LocatedNode> {
        self.settings.iter().rev().find(|(found, ..)| found == name).and_then(|(.., place)| place.as_ref())
    }

    /// The pages and memory that the settings ask for, as for a server whose configuration file has them.
    pub fn requested_memory(&self, notes: &mut Notes) -> Requested {
        let mut configuration = Configuration::default();
        configuration.settings.extend(self.settings.iter().map(|(name, value, _)| (name.clone(), value.clone())));
        requested_by_settings(|name| configuration.get(name).map(str::to_owned), notes)
    }

    /// `shared_preload_libraries` without directories.
    pub fn libraries(&self) -> Vec<String> {
        let text = self.setting("shared_preload_libraries").unwrap_or_default();
        let names = text.split(',').map(|name| name.trim().trim_matches(['"', '\'']));
        let names = names.map(|name| name.rsplit('/').next().unwrap_or_default().trim_end_matches(".so").to_owned());
        names.filter(|name| !name.is_empty()).collect()
    }
}

/// A quantity of the resources.
#[derive(Clone, Debug)]
pub struct Quantity {
    /// The quantity as it is written.
    pub text: String,
    /// The bytes; `None` if it is not a quantity.
    pub bytes: Option<Bytes>,
    /// The place of the quantity.
    pub place: LocatedNode,
}

impl Resources {
    /// The mapping of `limits` or `requests`.
    pub fn part(&self, name: &str) -> Option<LocatedNode> {
        match self {
            Self::Limits(home) => {
                let node = home.node.at(&["resources", name])?;
                Some(LocatedNode { file: home.file, node: Rc::clone(node) })
            }
            Self::Single(home) => {
                let node = home.node.get("hugePages")?;
                Some(LocatedNode { file: home.file, node: Rc::clone(node) })
            }
            Self::Elsewhere(_) => None,
        }
    }

    /// A quantity of `limits` or `requests`.
    pub fn quantity(&self, part: &str, resource: &str) -> Option<Quantity> {
        if let (Self::Single(home), "memory" | "cpu") = (self, resource) {
            return quantity_of(home.file, home.node.get(resource)?);
        }
        let part = self.part(part)?;
        quantity_of(part.file, part.node.get(resource)?)
    }

    /// The huge page sizes that are requested or limited, ascending.
    pub fn page_sizes(&self) -> Vec<PageSize> {
        let parts = ["limits", "requests"].map(|part| self.part(part));
        let names = parts.iter().flatten().flat_map(|part| part.node.entries()).filter_map(|(key, value)| {
            let is_zero = value.text().and_then(quantity::bytes) == Some(Bytes(0));
            key.text().filter(|_| !is_zero)
        });
        let mut sizes: Vec<_> = names.filter_map(quantity::page_size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

fn quantity_of(file: usize, node: &Rc<YamlNode>) -> Option<Quantity> {
    let text = node.text()?.to_owned();
    let bytes = quantity::bytes(&text);
    Some(Quantity { text, bytes, place: LocatedNode { file, node: Rc::clone(node) } })
}
