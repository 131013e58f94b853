//! One PostgreSQL of a manifest: its settings, if they were understood, and its resources.

use std::rc::Rc;

use hugepage_kernel::{Bytes, PageSize};

use super::quantity;
use super::settings::{KnownSettings, NotUnderstood, Setting};
use super::yaml::{LocatedNode, YamlNode};

/// The kind of manifest, which decides who checks it and what else is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ManifestForm {
    /// A container of a Pod, or of the template of a Deployment, StatefulSet or the like.
    Pod,
    /// The Cluster of CloudNativePG, or EDB's.
    Cloudnativepg,
    /// Crunchy's PostgresCluster or Percona's PerconaPGCluster, one set of instances.
    Pgo,
    /// Zalando's postgresql.
    Zalando,
    /// Another document that mentions PostgreSQL.
    Other,
}

impl ManifestForm {
    /// Whether Patroni writes the configuration: it leaves settings out that the server does not have.
    pub const fn has_patroni(self) -> bool {
        matches!(self, Self::Pgo | Self::Zalando)
    }
}

/// The resources of a container.
#[derive(Clone, Debug)]
pub enum Resources {
    /// The mapping that has `resources: {requests, limits}`, or to which they can be added.
    Container {
        /// The container, or the specification of a custom resource.
        home: LocatedNode,
        /// The pod, whose `resources` hold for what the container does not mention (Kubernetes 1.34).
        pod: Option<LocatedNode>,
    },
    /// The document was not understood.
    Unknown,
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
    /// The settings, understood as a whole, or the reason why not.
    pub settings: Result<KnownSettings, NotUnderstood>,
    /// The major version; `None` if the manifest does not say it.
    pub major: Option<u32>,
    /// Settings of the manifest that the server's major does not have.
    pub nonexistent: Vec<Setting>,
    /// The resources of the container.
    pub resources: Resources,
    /// The node's default size of huge pages, or the reason why it is unknown.
    pub default_page_size: Result<PageSize, NotUnderstood>,
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
    /// Resources of a container of its own.
    pub const fn of_container(home: LocatedNode) -> Self {
        Self::Container { home, pod: None }
    }

    /// The mapping of `limits` or `requests` of the container.
    pub fn part(&self, name: &str) -> Option<LocatedNode> {
        let Self::Container { home, .. } = self else { return None };
        part_of(home, name)
    }

    /// The mappings of `limits` or `requests` of the container and of the pod.
    fn parts(&self, name: &str) -> [Option<LocatedNode>; 2] {
        let Self::Container { home, pod } = self else { return [None, None] };
        [part_of(home, name), pod.as_ref().and_then(|pod| part_of(pod, name))]
    }

    /// A quantity of `limits` or `requests`: the pod's where the container does not mention the resource.
    pub fn quantity(&self, part: &str, resource: &str) -> Option<Quantity> {
        let mentions = |name: &str| self.part(name).is_some_and(|found| found.node.get(resource).is_some());
        let [own, of_pod] = self.parts(part);
        let found = if mentions("limits") || mentions("requests") { own } else { of_pod }?;
        quantity_of(found.file, found.node.get(resource)?)
    }

    /// Whether the quantity is the pod's.
    pub fn is_of_pod(&self, resource: &str) -> bool {
        let found = self.quantity("limits", resource).or_else(|| self.quantity("requests", resource));
        let own = ["limits", "requests"].map(|part| self.part(part));
        found.is_some() && own.iter().flatten().all(|own| own.node.get(resource).is_none())
    }

    /// The names of resources of huge pages that are requested or limited, and are not zero.
    fn huge_page_resources(&self) -> impl Iterator<Item = String> {
        let all: Vec<_> = ["limits", "requests"].into_iter().flat_map(|part| self.parts(part)).flatten().collect();
        all.into_iter().flat_map(|part| {
            let names = part.node.entries().iter().filter_map(|(key, value)| {
                let is_zero = value.text().and_then(quantity::bytes) == Some(Bytes(0));
                key.text().filter(|name| !is_zero && name.starts_with("hugepages-")).map(str::to_owned)
            });
            names.collect::<Vec<_>>()
        })
    }

    /// The huge page sizes that are requested or limited, ascending.
    pub fn page_sizes(&self) -> Vec<PageSize> {
        let mut sizes: Vec<_> = self.huge_page_resources().filter_map(|name| quantity::page_size(&name)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// A resource of huge pages whose name no node has: the size is none, or written in another way than Kubernetes writes it.
    pub fn unknown_page_size(&self) -> Option<String> {
        let is_usual = |name: &str| quantity::page_size(name).is_some_and(|size| quantity::resource(size) == name);
        self.huge_page_resources().find(|name| !is_usual(name))
    }
}

fn part_of(home: &LocatedNode, name: &str) -> Option<LocatedNode> {
    Some(home.beside(home.node.at(&["resources", name])?))
}

fn quantity_of(file: usize, node: &Rc<YamlNode>) -> Option<Quantity> {
    let text = node.text()?.to_owned();
    let bytes = quantity::bytes(&text);
    Some(Quantity { text, bytes, place: LocatedNode { file, node: Rc::clone(node) } })
}
