//! How Oracle's Grid Infrastructure stops and starts an instance.

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
