//! Identifies one server: whose it is and where, and what its files tell of it.

use std::time::SystemTime;

use hugepage_kernel::InstanceFiles;
use hugepage_kernel::host::identity;
use hugepage_kernel::notes::Notes;
use hugepage_kernel::proc::credentials::Credentials;
use hugepage_kernel::proc::{namespace, service};

use super::context::{InspectContext, ServerSettings};
use super::discover::{DiscoveredKind, DiscoveredServer};
use super::identity::{InstanceKind, InstancePlace, ServerIdentity};
use super::observe::ObservedMemory;
use super::postgresql;

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
            version: None,
            directory: None,
            history_directory: None,
            system_identifier: None,
            home: None,
            database: None,
            alert_log: None,
            last_start: None,
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
        (identity, ServerSettings::PostgreSql(Box::new(files.settings)))
    }
}
