//! Whether Oracle's Grid Infrastructure manages an instance, as far as files and its cgroup show it, and how it stops and starts one.

use hugepage_assess::advice::command::quoted;
use hugepage_assess::model::ServerCommands;
use hugepage_kernel::{InstanceFiles, Notes};
use serde::{Deserialize, Serialize};

use crate::readers::grid::GridInfrastructure;
use crate::readers::locate::is_numbered;
use crate::readers::names::is_name;
use crate::readers::{OracleInstance, OracleKind};
use crate::settings::Settings;

/// The longest DB_UNIQUE_NAME.
const MAX_NAME_BYTES: usize = 30;

/// Grid Infrastructure of the host of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clusterware {
    /// Whether it is of a cluster; else it is Oracle Restart.
    pub is_cluster: bool,
    /// What the instance is registered as; `None` if nothing shows that it is.
    pub resource: Option<GridResource>,
    /// Whether its `srvctl` has only options of one letter (11.2).
    pub has_short_options: bool,
}

/// What `srvctl` and `crsctl` stop and start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GridResource {
    /// All instances of a database: the only one under Oracle Restart and of RAC One Node.
    Database {
        /// DB_UNIQUE_NAME.
        name: String,
    },
    /// One instance of a database of RAC.
    Instance {
        /// DB_UNIQUE_NAME of the database.
        database: String,
        /// ORACLE_SID.
        sid: String,
    },
    /// The Grid Infrastructure management repository.
    ManagementDatabase,
    /// All of the cluster's software on this host, without which ASM does not stop.
    Stack,
}

impl Clusterware {
    /// The commands that stop and start the instance; `None` if nothing shows that Grid Infrastructure does that.
    pub fn commands(&self) -> Option<ServerCommands> {
        Some(ServerCommands { stop: self.control("stop")?, start: self.control("start")? })
    }

    /// `verb` is `stop` or `start`.
    fn control(&self, verb: &str) -> Option<String> {
        let (db, instance) = if self.has_short_options { ("-d", "-i") } else { ("-db", "-instance") };
        Some(match self.resource.as_ref()? {
            GridResource::Database { name } => format!("srvctl {verb} database {db} {}", quoted(name)),
            GridResource::Instance { database, sid } => {
                format!("srvctl {verb} instance {db} {} {instance} {}", quoted(database), quoted(sid))
            }
            GridResource::ManagementDatabase => format!("srvctl {verb} mgmtdb"),
            GridResource::Stack => self.stack(verb),
        })
    }

    /// The command that stops or starts all of Grid Infrastructure on this host, as root.
    pub fn stack(&self, verb: &str) -> String {
        format!("crsctl {verb} {}", if self.is_cluster { "crs" } else { "has" })
    }
}

impl Settings {
    /// Grid Infrastructure of the instance with these settings; `None` if there is none. A cluster manages every instance with
    /// CLUSTER_DATABASE, or with the number of an instance behind the name of its database. Other databases are managed only if
    /// an agent's work is seen. `by_agent`: whether Grid Infrastructure started it, or wrote its line of oratab.
    pub(crate) fn clusterware(
        &self,
        instance: &OracleInstance,
        files: &InstanceFiles,
        by_agent: impl FnOnce() -> bool,
        notes: &mut Notes,
    ) -> Option<Clusterware> {
        let grid = GridInfrastructure::read(files, notes)?;
        let is_cluster = grid.is_cluster.unwrap_or_else(|| self.has_cluster_database());
        let resource = match instance.kind {
            OracleKind::Database => self.resource(&instance.sid, is_cluster, by_agent),
            OracleKind::Asm => is_cluster.then_some(GridResource::Stack),
            OracleKind::ManagementDatabase => Some(GridResource::ManagementDatabase),
            OracleKind::AsmProxy | OracleKind::IoServer => None,
        };
        let has_short_options = self.version().is_some_and(|version| version.starts_with("11."));
        Some(Clusterware { is_cluster, resource, has_short_options })
    }

    fn resource(&self, sid: &str, is_cluster: bool, by_agent: impl FnOnce() -> bool) -> Option<GridResource> {
        let name = self.database_names().into_iter().next().filter(|name| is_name(name, MAX_NAME_BYTES))?;
        let (of_sid, of_name) = (sid.to_ascii_lowercase(), name.to_ascii_lowercase());
        let has_number = is_cluster && is_numbered(&of_sid, &of_name);
        // Of RAC One Node one instance runs, on any of the nodes.
        if has_number && of_sid[of_name.len()..].starts_with('_') {
            return Some(GridResource::Database { name });
        }
        if has_number || (is_cluster && self.has_cluster_database()) {
            return Some(GridResource::Instance { database: name, sid: sid.to_owned() });
        }
        by_agent().then_some(GridResource::Database { name })
    }

    fn has_cluster_database(&self) -> bool {
        self.known().find_map(|parameters| parameters.flag("cluster_database")) == Some(true)
    }
}
