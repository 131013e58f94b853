//! Identifies one server: whose it is and where, and what its files tell of it.

use std::time::SystemTime;

use hugepage_assess::history::InstanceKey;
use hugepage_kernel::InstanceFiles;
use hugepage_kernel::host::identity;
use hugepage_kernel::notes::Notes;
use hugepage_kernel::proc::namespace;
use hugepage_oracle::running::RunningOracle;
use serde::{Deserialize, Serialize};

use super::context::InspectContext;
use super::control_group;
use super::discover::{DiscoveredKind, DiscoveredServer};
use super::host_directory::host_directory;
use super::memory::ObservedMemory;
use super::postgresql::{self, PostgreSqlServer};
use crate::escape;
use crate::readers::Owner;

/// Whose server it is, and where: what keeps servers apart that call themselves the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstancePlace {
    /// The effective user of its process, as this program's user namespace has it; `None` if unknown.
    pub uid: Option<u32>,
    /// In a container whose files this program sees nowhere else: device and inode of its data directory or home,
    /// `8.1-1234`, or the number of its mount namespace.
    pub container: Option<String>,
    /// Of a container: the directory of the host that it has above that directory or home, a volume or a layer of its image; `None`
    /// also if that is not visible.
    pub host_directory: Option<String>,
    /// The host's name as it sees it, if that is another one: of its container.
    pub host_name: Option<String>,
}

/// What tells one server from others, and from what it was earlier.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerIdentity {
    /// The SID, or the data directory; `process 4711` where that is not visible.
    pub name: String,
    /// The postmaster, or PMON.
    pub pid: i32,
    /// When that process started.
    pub started: Option<SystemTime>,
    /// The inode of the largest mapping of its shared memory: every allocation gets a new one.
    pub allocation: Option<u64>,
    /// Whose it is, and where.
    pub place: InstancePlace,
    /// As whom its files are read.
    pub reader: Owner,
    /// The systemd service that started it; `None` for what a session started.
    pub service: Option<String>,
    /// The container of its control group, as its runtime names that; `None` for the host.
    pub runtime: Option<String>,
    /// In a pod of Kubernetes: namespace, pod and container, as `shop/db-0/postgres`; `None` if root's files do not tell.
    #[serde(default)]
    pub pod: Option<String>,
    /// PostgreSQL's major version, Oracle's from its alert log.
    pub version: Option<String>,
    /// What only its product has.
    pub product: ServerProduct,
}

/// What only servers of one product have.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ServerProduct {
    /// A PostgreSQL server.
    PostgreSql(Box<PostgreSqlServer>),
    /// An Oracle instance.
    Oracle(Box<RunningOracle>),
}

impl ServerIdentity {
    /// The kind of the server: `postgresql`, or one of Oracle's.
    pub fn kind(&self) -> String {
        self.oracle()
            .map_or_else(|| "postgresql".to_owned(), |oracle| oracle.kind.to_string())
    }

    /// What tells it from all others of the host.
    pub fn key(&self) -> InstanceKey {
        InstanceKey {
            kind: self.kind(),
            uid: self.place.uid,
            container: self.place.container.clone(),
            name: self.name.clone(),
            home: self.oracle().and_then(|oracle| oracle.home.clone()),
        }
    }

    /// The number before the first point of its version; `None` if unknown.
    pub(super) fn major(&self) -> Option<u32> {
        self.version.as_ref()?.split('.').next()?.parse().ok()
    }

    /// What sets its limit on locked memory, by its control group; `None` for what a session started.
    pub(super) fn memlock_setting(&self) -> Option<String> {
        Some(match (&self.runtime, &self.service) {
            (Some(name), _) if name.starts_with("kubepods") => {
                "of the container runtime of its node".to_owned()
            }
            (Some(_), _) => "--ulimit memlock of its container".to_owned(),
            (None, service) => format!(
                "LimitMEMLOCK= in a drop-in of {}, if it is not there yet",
                service.as_ref()?
            ),
        })
    }

    /// What a PostgreSQL server has.
    pub fn postgresql(&self) -> Option<&PostgreSqlServer> {
        if let ServerProduct::PostgreSql(server) = &self.product {
            Some(server)
        } else {
            None
        }
    }

    /// Whether the directory in which it works is its user's, as a data directory is: anybody may work in another one.
    pub(super) fn owns_its_directory(&self) -> bool {
        let owner = self.postgresql().and_then(|server| server.owner);
        owner.is_none() || owner == self.place.uid
    }

    /// What an Oracle instance has.
    pub fn oracle(&self) -> Option<&RunningOracle> {
        if let ServerProduct::Oracle(oracle) = &self.product {
            Some(oracle)
        } else {
            None
        }
    }
}

/// What tells the server from others, and the settings that its files have.
pub(super) fn identify(
    host: &InspectContext<'_>,
    found: &DiscoveredServer,
    files: &InstanceFiles,
    started: Option<SystemTime>,
    memory: &ObservedMemory,
    is_in_shm: Option<bool>,
    notes: &mut Notes,
) -> ServerIdentity {
    let root = host.root;
    let pid = found.pid;
    let (name, version, product) = match &found.who {
        DiscoveredKind::PostgreSql(arguments) => {
            let (server, version) = postgresql::files(root, files, pid, arguments, notes);
            let name = server.directory.clone();
            let name = name.map_or_else(|| format!("process {pid}"), escape::name);
            (name, version, ServerProduct::PostgreSql(Box::new(server)))
        }
        DiscoveredKind::Oracle(instance) => {
            let oracle =
                RunningOracle::read(root, (pid, started), files, instance, is_in_shm, notes);
            let version = oracle.settings.version().map(str::to_owned);
            let product = ServerProduct::Oracle(Box::new(oracle));
            (instance.sid.clone(), version, product)
        }
    };
    let directory = match &product {
        ServerProduct::PostgreSql(server) => server.directory.as_deref(),
        ServerProduct::Oracle(oracle) => oracle.home.as_deref(),
    };
    let mappings = memory.shared.iter().flatten();
    let container = container(host, pid, files, directory);
    ServerIdentity {
        name,
        pid,
        started,
        allocation: mappings
            .max_by_key(|mapping| mapping.size())
            .map(|mapping| mapping.inode),
        place: InstancePlace {
            uid: found.users.as_ref().map(|users| users.effective),
            host_directory: container
                .as_ref()
                .and_then(|_| host_directory(root, pid, directory?)),
            container,
            host_name: identity::host_name_of(root, pid, files),
        },
        reader: Owner::default(),
        service: control_group::service(root, pid),
        runtime: control_group::runtime(root, pid),
        pod: None,
        version,
        product,
    }
}

/// The container of [`InstancePlace`]. `directory`: the data directory, or the home. What a service sees in a mount
/// namespace of its own, as systemd makes them, may still be the directory of that name of the host.
fn container(
    host: &InspectContext<'_>,
    pid: i32,
    files: &InstanceFiles,
    directory: Option<&str>,
) -> Option<String> {
    if host.root.is_tree() || namespace::container(host.root, pid).is_none() {
        return None;
    }
    let its = directory.and_then(|directory| files.root().inode(directory));
    let ours = directory.and_then(|directory| host.root.inode(directory));
    (its.is_none() || its != ours).then(|| match its {
        Some((device, inode)) => {
            format!(
                "{}.{}-{inode}",
                rustix::fs::major(device),
                rustix::fs::minor(device)
            )
        }
        None => namespace::number(host.root, pid).unwrap_or_default(),
    })
}
