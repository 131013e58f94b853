//! Identifies one server: whose it is and where, and what its files tell of it.

use std::time::SystemTime;

use hugepage_assess::model::Requested;
use hugepage_kernel::InstanceFiles;
use hugepage_kernel::host::identity;
use hugepage_kernel::notes::Notes;
use hugepage_kernel::proc::namespace;
use hugepage_oracle::running::RunningOracle;
use hugepage_oracle::settings::Settings;
use serde::{Deserialize, Serialize};

use super::context::InspectContext;
use super::control_group;
use super::discover::{DiscoveredKind, DiscoveredServer};
use super::memory::ObservedMemory;
use super::postgresql::{self, PostgreSqlServer, PostgreSqlSettings};
use crate::readers::Owner;

/// Whose server it is, and where: what keeps servers apart that call themselves the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstancePlace {
    /// The effective user of its process, as this program's user namespace has it; `None` if unknown.
    pub uid: Option<u32>,
    /// In a container whose files this program sees nowhere else: device and inode of its data directory or home,
    /// `8.1-1234`, or the number of its mount namespace.
    pub container: Option<String>,
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
    /// The systemd service that started it, to which limits.conf does not apply; `None` for what a session started.
    pub service: Option<String>,
    /// PostgreSQL's major version, Oracle's from its alert log.
    pub version: Option<String>,
    /// What only its product has.
    pub product: ServerProduct,
}

/// What only servers of one product have.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ServerProduct {
    /// A PostgreSQL server.
    PostgreSql(PostgreSqlServer),
    /// An Oracle instance.
    Oracle(Box<RunningOracle>),
}

/// What the files of a server say of the start that runs, and of the next one.
pub(super) enum ServerSettings {
    PostgreSql(PostgreSqlSettings),
    Oracle(Requested, Settings),
}

impl ServerIdentity {
    /// The kind of the server: `postgresql`, or one of Oracle's.
    pub fn kind(&self) -> String {
        self.oracle().map_or_else(|| "postgresql".to_owned(), |oracle| oracle.kind.to_string())
    }

    /// The number before the first point of its version; `None` if unknown.
    pub(super) fn major(&self) -> Option<u32> {
        self.version.as_ref()?.split('.').next()?.parse().ok()
    }

    /// What a PostgreSQL server has.
    pub const fn postgresql(&self) -> Option<&PostgreSqlServer> {
        if let ServerProduct::PostgreSql(server) = &self.product { Some(server) } else { None }
    }

    /// What an Oracle instance has.
    pub fn oracle(&self) -> Option<&RunningOracle> {
        if let ServerProduct::Oracle(oracle) = &self.product { Some(oracle) } else { None }
    }
}

impl InspectContext<'_> {
    /// What tells the server from others, and the settings that its files have.
    pub(super) fn identify(
        &self,
        found: &DiscoveredServer,
        files: &InstanceFiles,
        started: Option<SystemTime>,
        memory: &ObservedMemory,
        is_in_shm: Option<bool>,
        notes: &mut Notes,
    ) -> (ServerIdentity, ServerSettings) {
        let (root, pid) = (self.root, found.pid);
        let (name, version, product, settings) = match &found.who {
            DiscoveredKind::PostgreSql(arguments) => {
                let (server, version, settings) = postgresql::files(root, files, pid, arguments, notes);
                let name = server.directory.clone().unwrap_or_else(|| format!("process {pid}"));
                (name, version, ServerProduct::PostgreSql(server), ServerSettings::PostgreSql(settings))
            }
            DiscoveredKind::Oracle(instance) => {
                let (oracle, requested, settings) =
                    RunningOracle::read(root, (pid, started), files, instance, is_in_shm, notes);
                let version = oracle.version().map(str::to_owned);
                let product = ServerProduct::Oracle(Box::new(oracle));
                (instance.sid.clone(), version, product, ServerSettings::Oracle(requested, settings))
            }
        };
        let directory = match &product {
            ServerProduct::PostgreSql(server) => server.directory.as_deref(),
            ServerProduct::Oracle(oracle) => oracle.home.as_deref(),
        };
        let mappings = memory.shared.iter().flatten();
        let identity = ServerIdentity {
            name,
            pid,
            started,
            allocation: mappings.max_by_key(|mapping| mapping.size()).map(|mapping| mapping.inode),
            place: InstancePlace {
                uid: found.users.as_ref().map(|users| users.effective),
                container: self.container(pid, files, directory),
                host_name: identity::host_name_of(root, pid, files),
            },
            reader: Owner::default(),
            service: control_group::service(root, pid),
            version,
            product,
        };
        (identity, settings)
    }

    /// The container of [`InstancePlace`]. `directory`: the data directory, or the home. What a service sees in a mount
    /// namespace of its own, as systemd makes them, may still be the directory of that name of the host.
    fn container(&self, pid: i32, files: &InstanceFiles, directory: Option<&str>) -> Option<String> {
        if self.root.is_tree() || namespace::container(self.root, pid).is_none() {
            return None;
        }
        let its = directory.and_then(|directory| files.root().inode(directory));
        let ours = directory.and_then(|directory| self.root.inode(directory));
        (its.is_none() || its != ours).then(|| match its {
            Some((device, inode)) => {
                format!("{}.{}-{inode}", rustix::fs::major(device), rustix::fs::minor(device))
            }
            None => namespace::number(self.root, pid).unwrap_or_default(),
        })
    }
}
