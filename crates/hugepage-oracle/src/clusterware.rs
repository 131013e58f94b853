//! How Oracle's Grid Infrastructure stops and starts an instance.

use hugepage_assess::advice::command::quoted;
use hugepage_assess::model::ServerCommands;

/// Grid Infrastructure of the host of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clusterware {
    /// Whether it is of a cluster; else it is Oracle Restart.
    pub is_cluster: bool,
    /// What the instance is registered as; `None` if nothing shows that it is.
    pub resource: Option<GridResource>,
    /// Whether its `srvctl` has only options of one letter (11.2).
    pub has_short_options: bool,
}

/// What `srvctl` and `crsctl` stop and start.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// The commands that stop and start the instance; `None` where nothing shows that Grid Infrastructure does that.
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
