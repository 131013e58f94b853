//! Reads a host: its pools, and every database server on it.

use std::collections::BTreeMap;

use hugepage_facts::{HostFacts, OtherProcesses, ServerFacts, Snapshot, StoppedServers, Unread};
use hugepage_kernel::host::identity;
use hugepage_kernel::memory::{pool, thp};
use hugepage_kernel::proc::{namespace, process};
use hugepage_kernel::source::failures;
use hugepage_kernel::{NextBoot, Notes, Root};
use hugepage_oracle::stopped::dev_shm;
use hugepage_server::pools;
use rustix::process::geteuid;

use crate::AskStart;
use crate::context::InspectContext;
use crate::control_group::{container, container_of_pod};
use crate::discover::FoundServers;
use crate::glances::Glances;
use crate::holders::{holders, promised_to_root};
use crate::inspect::inspect;
use crate::readers::{self, owner};
use crate::service_accounts::listed_service_accounts;
use crate::stopped_readers::stopped_oracle;

/// Why nothing can be said of a host from within a container, or any PID namespace but the first.
pub const IN_CONTAINER: &str =
    "this container shows no processes of the host. Run this on the host";

/// Reads the host and each of its servers. The accounts with the names or uids `service_accounts` are service accounts
/// too, whose servers count; `ask` answers what files of PostgreSQL servers come to that have changed since the start.
pub fn read(root: &Root, service_accounts: &[String], ask: Option<&AskStart<'_>>) -> Snapshot {
    failures::forget();
    let mut notes = Notes::default();
    let mut host = InspectContext::read(root, service_accounts, ask, &mut notes);
    let taken_at = root.now();
    let processes_are_hidden = process::hides_others(root);
    if processes_are_hidden {
        notes.add("/proc is mounted with hidepid, which hides the processes of other users: run this as root");
    }
    let mut glances = Glances::look(&host.accounts, &mut notes);
    let mut unread = Vec::new();
    if let Err(why) = listed_service_accounts(root) {
        owner::unread(&owner::own(), None, why).add_to(&mut unread);
    }
    let servers = servers(&host, &mut glances, &mut unread);
    // A server may have come since, and was given pages, or none, by the pool as it is now.
    host.pools = pools::rows(root, host.hierarchy.as_ref(), &mut notes);
    let owners = host.accounts.owners();
    let stopped = stopped_oracle(root, &servers, &owners, &mut unread, &mut notes);
    // What root's processes are promised comes first: who has many mappings can keep an answer on holders from coming.
    let nobody = owner::nobody(root);
    let of_root = nobody.of(glances.of_root.iter().map(|(pid, _)| *pid));
    let promised = readers::read_as(&of_root, || promised_to_root(&host, &glances.of_root));
    let promised_to_root = promised.unwrap_or_else(|why| {
        why.add_to(&mut unread);
        BTreeMap::new()
    });
    let of_holders = nobody.of(glances.holders.iter().map(|(process, _)| process.pid));
    let looked_at = readers::read_as(&of_holders, || holders(&host, &glances.holders, true));
    let holders = looked_at.unwrap_or_else(|why| {
        notes.add(why.to_string());
        holders(&host, &glances.holders, false)
    });
    let is_in_container = namespace::shows_container_alone(root);
    if is_in_container {
        notes.add(IN_CONTAINER);
    }
    let segments = host.kernel.system_v.segments.iter().flatten();
    let unattached = segments.filter(|segment| segment.nattch == 0);
    let others = OtherProcesses {
        promised_to_root,
        names: unattached
            .map(|segment| (segment.uid, host.accounts.name(segment.uid)))
            .collect(),
        ..glances.others
    };
    let mut host = HostFacts {
        host_name: notes.keep(identity::host_name(root)),
        taken_at,
        next_boot: NextBoot::read(root),
        base_page_size: host.base,
        page_sizes: pool::sizes(root).ok(),
        dev_shm: dev_shm(root, host.meminfo.as_ref()),
        is_tree: root.is_tree(),
        shows_all: root.is_live() && !processes_are_hidden && !is_in_container,
        kernel: host.kernel,
        pools: host.pools,
        transparent_hugepage: notes.keep(thp::choice(root, "enabled")).flatten(),
        shmem_enabled: notes.keep(thp::choice(root, "shmem_enabled")).flatten(),
        processes_are_hidden,
        holders,
        is_in_container,
        strangers: glances.strangers,
        others,
        unread,
        owners,
        stopped,
        stopped_servers: StoppedServers::default(),
        meminfo: host.meminfo,
        notes: notes.into_vec(),
    };
    add_failures(&mut host.unread);
    Snapshot { host, servers }
}

/// Adds what this process itself could not read, as far as it should.
pub(super) fn add_failures(unread: &mut Vec<Unread>) {
    let is_denied = failures::was_denied() && geteuid().is_root();
    if failures::ran_short() || failures::has_failed() || is_denied {
        let why = "files, memory or access was refused, and what could not be opened is not seen";
        owner::unread(&owner::own(), None, why).add_to(unread);
    }
}

/// Every server that counts, inspected by its user's reader, in the order of process ids. `glances` gets those that are none.
fn servers(
    host: &InspectContext<'_>,
    glances: &mut Glances,
    unread: &mut Vec<Unread>,
) -> Vec<ServerFacts> {
    let candidates = std::mem::take(&mut glances.candidates);
    let (owners, candidates): (Vec<_>, Vec<_>) = owner::of_processes(host.root, candidates)
        .into_iter()
        .unzip();
    let read = |number: usize| {
        let found = FoundServers::among(&host.accounts, &candidates[number]);
        let servers: Vec<_> = found
            .servers
            .iter()
            .filter_map(|found| inspect(host, found))
            .collect();
        let failed = (failures::was_denied(), failures::has_failed());
        (servers, found.others, failed)
    };
    let mut servers = Vec::new();
    let answers = readers::read_each(&owners, read);
    for ((owner, candidates), answer) in owners.iter().zip(candidates).zip(answers) {
        let Ok((mut found, others, failed)) = answer.map_err(|why| why.add_to(unread)) else {
            continue;
        };
        // What a server started with, its user may read; something else keeps its reader from that. Nobody stands for root.
        let is_user = owner::is_another(owner) && owner.uid != owner::nobody(host.root).uid;
        let (was_denied, has_failed) = failed;
        if has_failed || is_user && was_denied {
            owner::unread_in_part(owner).add_to(unread);
        }
        // Whose they are it does not say itself.
        found.retain(|server| candidates.iter().any(|one| one.pid == server.id.pid));
        for server in &mut found {
            server.id.reader = owner.of([server.id.pid]);
            server.id.runtime = container(host.root, server.id.pid).map(|(_, name)| name);
            server.id.pod = container_of_pod(host.root, server.id.pid);
        }
        servers.extend(found);
        glances.add_found(&host.accounts, candidates, &others);
    }
    servers.sort_by_key(|server| server.id.pid);
    servers
}
