//! What tells one server from others, and what only its product has.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::{InstanceKey, Owner, PostgreSqlServer, RunningOracle};

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
    pub fn major(&self) -> Option<u32> {
        self.version.as_ref()?.split('.').next()?.parse().ok()
    }

    /// What a PostgreSQL server has.
    pub fn postgresql(&self) -> Option<&PostgreSqlServer> {
        if let ServerProduct::PostgreSql(server) = &self.product {
            Some(server)
        } else {
            None
        }
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
