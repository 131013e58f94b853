//! Identifies one server: whose it is and where, and what its files tell of it.

use std::time::SystemTime;

use hugepage_facts::{InstancePlace, ObservedMemory, Owner, ServerIdentity, ServerProduct, escape};
use hugepage_kernel::InstanceFiles;
use hugepage_kernel::host::identity;
use hugepage_kernel::notes::Notes;
use hugepage_kernel::proc::namespace;
use hugepage_oracle::running;

use super::context::InspectContext;
use super::control_group;
use super::discover::{DiscoveredKind, DiscoveredServer};
use super::host_directory::host_directory;
use super::postgresql;

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
            let oracle = running::read(root, (pid, started), files, instance, is_in_shm, notes);
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
        runtime: None,
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

/// Whether the directory in which it works is its user's, as a data directory is: anybody may work in another one.
pub(super) fn owns_its_directory(id: &ServerIdentity) -> bool {
    let owner = id.postgresql().and_then(|server| server.owner);
    owner.is_none() || owner == id.place.uid
}
