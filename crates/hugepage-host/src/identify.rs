//! Identifies one server: whose it is and where, and what its files tell of it.

use std::fmt;
use std::time::SystemTime;

use hugepage_kernel::InstanceFiles;
use hugepage_kernel::host::identity;
use hugepage_kernel::notes::Notes;
use hugepage_kernel::proc::credentials::Credentials;
use hugepage_kernel::proc::{namespace, service};
use hugepage_oracle::readers::{LastStart, OracleKind};

use super::context::{InspectContext, ServerSettings};
use super::discover::{DiscoveredKind, DiscoveredServer};
use super::observe::ObservedMemory;
use super::postgresql;

/// The kind of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstanceKind {
    /// PostgreSQL.
    #[default]
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
#[derive(Clone, Debug, Default)]
pub struct ServerIdentity {
    /// What it is.
    pub kind: InstanceKind,
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

impl InspectContext<'_> {
    /// What tells the server from others, and the settings that its files have.
    pub(super) fn identify(
        &self,
        found: &DiscoveredServer,
        files: &InstanceFiles,
        started: Option<SystemTime>,
        memory: &ObservedMemory,
        notes: &mut Notes,
    ) -> (ServerIdentity, ServerSettings) {
        let process = self.process(found, files, started, memory);
        let (identity, settings) = match &found.who {
            DiscoveredKind::PostgreSql(arguments) => self.postgresql(process, files, arguments, notes),
            DiscoveredKind::Oracle(instance) => self.oracle(process, files, instance, memory.is_sga_in_files, notes),
        };
        let directory = identity.directory.as_deref().or(identity.home.as_deref());
        let container = self.container(found.pid, files, directory);
        (ServerIdentity { place: InstancePlace { container, ..identity.place }, ..identity }, settings)
    }

    /// What its process alone tells of a server.
    fn process(
        &self,
        found: &DiscoveredServer,
        files: &InstanceFiles,
        started: Option<SystemTime>,
        memory: &ObservedMemory,
    ) -> ServerIdentity {
        let (root, pid) = (self.root, found.pid);
        let uid = Credentials::read(root, pid).ok().flatten().map(|credentials| credentials.effective);
        let mappings = memory.shared.iter().flat_map(|memory| &memory.mappings);
        ServerIdentity {
            kind: match &found.who {
                DiscoveredKind::PostgreSql(_) => InstanceKind::PostgreSql,
                DiscoveredKind::Oracle(instance) => InstanceKind::Oracle(instance.kind),
            },
            name: format!("process {pid}"),
            pid,
            started,
            allocation: mappings.max_by_key(|mapping| mapping.size()).map(|mapping| mapping.inode),
            place: InstancePlace { uid, container: None, host_name: identity::host_name_of(root, pid, files) },
            owner: uid.map(|uid| self.accounts.name(root, uid)),
            service: service::service_of(root, pid),
            not_counted: found.not_counted.clone(),
            ..ServerIdentity::default()
        }
    }

    /// The container of [`InstancePlace`]. `directory`: the data directory, or the home. What a service sees in a mount
    /// namespace of its own, as systemd makes them, may still be the directory of that name of the host.
    fn container(&self, pid: i32, files: &InstanceFiles, directory: Option<&str>) -> Option<String> {
        if self.root.is_tree() || namespace::container(self.root, pid).is_none() {
            return None;
        }
        let its = directory.and_then(|directory| files.inode(directory));
        let ours = directory.and_then(|directory| InstanceFiles::own(self.root).inode(directory));
        (its.is_none() || its != ours).then(|| match its {
            Some((device, inode)) => {
                let device = (rustix::fs::major(device), rustix::fs::minor(device));
                format!("{}.{}-{inode}", device.0, device.1)
            }
            None => namespace::number(self.root, pid).unwrap_or_default(),
        })
    }

    fn postgresql(
        &self,
        process: ServerIdentity,
        files: &InstanceFiles,
        arguments: &[String],
        notes: &mut Notes,
    ) -> (ServerIdentity, ServerSettings) {
        let files = postgresql::files(self.root, files, process.pid, arguments, notes);
        let identity = ServerIdentity {
            name: files.directory.clone().unwrap_or(process.name),
            directory: files.directory,
            history_directory: files.settings.configured.history_directory(),
            version: files.version,
            system_identifier: files.system_identifier,
            ..process
        };
        (identity, ServerSettings::PostgreSql(files.settings))
    }
}
