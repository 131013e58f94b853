//! What tells a server from others, and what its files tell of it.

use std::fmt;
use std::time::SystemTime;

use hugepage_oracle::readers::{LastStart, OracleKind};

/// The kind of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstanceKind {
    /// PostgreSQL.
    PostgreSql,
    /// Oracle.
    Oracle(OracleKind),
}

impl fmt::Display for InstanceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PostgreSql => "postgresql",
            Self::Oracle(OracleKind::Database) => "oracle",
            Self::Oracle(OracleKind::Asm) => "asm",
            Self::Oracle(OracleKind::ManagementDatabase) => "mgmtdb",
            Self::Oracle(OracleKind::AsmProxy) => "apx",
            Self::Oracle(OracleKind::IoServer) => "ios",
        })
    }
}

/// Whose server it is, and where: what keeps servers apart that call themselves the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
#[derive(Clone, Debug)]
pub struct ServerIdentity {
    /// What it is.
    pub kind: InstanceKind,
    /// Its SID, or its data directory; `process 4711` where that is not visible.
    pub name: String,
    /// The postmaster, or PMON.
    pub pid: i32,
    /// When that process started.
    pub started: Option<SystemTime>,
    /// The inode of the largest mapping of its shared memory: every allocation gets a new one.
    pub allocation: Option<u64>,
    /// Whose it is, and where.
    pub place: InstancePlace,
    /// The name of its user, or `uid 4711` where /etc/passwd has none.
    pub owner: Option<String>,
    /// The systemd service that started it, to which limits.conf does not apply; `None` for what a session started.
    pub service: Option<String>,
    /// Why it does not count for the host's verdict and pools, as `runs as alice`; `None` if it counts.
    pub not_counted: Option<String>,
    /// PostgreSQL's major version, Oracle's from its alert log.
    pub version: Option<String>,
    /// PostgreSQL's data directory.
    pub directory: Option<String>,
    /// PostgreSQL's `pg_hugepages.history_directory`; `None` if it is not set.
    pub history_directory: Option<String>,
    /// PostgreSQL's system identifier.
    pub system_identifier: Option<String>,
    /// ORACLE_HOME.
    pub home: Option<String>,
    /// The names of its database (Oracle), by the path of its alert log and by its parameters; `None` if none is known.
    pub database: Option<Vec<String>>,
    /// The path of its alert log, as its processes see it; `None` if none is visible.
    pub alert_log: Option<String>,
    /// What the alert log shows of the start of this instance.
    pub last_start: Option<LastStart>,
}

impl ServerIdentity {
    /// Whether it counts for the host's verdict and for the sizes of its pools.
    pub const fn counts(&self) -> bool {
        self.not_counted.is_none()
    }
}
