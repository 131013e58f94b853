//! Reads one server: what it is, what it has, and what it may have.

use std::collections::BTreeSet;

use hugepage_facts::{
    ObservedMemory, PageLimits, ServerFacts, ServerIdentity, ServerProduct, StartAnswer, pools,
};
use hugepage_kernel::mapping::memory_policy::allowed_nodes;
use hugepage_kernel::memory::kernel_limits::shares_ipc;
use hugepage_kernel::proc::process;
use hugepage_kernel::{CgroupLimits, InstanceFiles, Notes, PageSize};

use crate::context::InspectContext;
use crate::discover::DiscoveredServer;
use crate::identify::identify;
use crate::memory::observe;
use crate::next_start::{AskStart, StartFiles, StartProgram};
use crate::postgresql::{changed_since, has_configuration};
use crate::postgresql_settings::{requested_by_settings, without_others};
use crate::processes::Credentials;

/// `None` for a postgres program without shared memory, such as one that initialises or only answers a question.
pub(super) fn inspect(host: &InspectContext<'_>, found: &DiscoveredServer) -> Option<ServerFacts> {
    let root = host.root;
    let mut notes = Notes::default();
    let started = notes.keep(process::started(root, found.pid)).flatten();
    let (memory, is_in_shm) = observe(host, found, &mut notes)?;
    let files = &InstanceFiles::of_process(root, found.pid);
    let mut id = identify(host, found, files, started, &memory, is_in_shm, &mut notes);
    if let Some(ask) = host.ask {
        ask_program(&mut id, ask);
    }
    let sizes = sizes(host, &id, &memory);
    if let ServerProduct::PostgreSql(server) = &mut id.product {
        without_others(&mut server.settings.configured);
    }
    let pid = id.pid.to_string();
    let of_size = |size: PageSize| {
        let mut notes = Notes::default();
        let limits = match &host.hierarchy {
            None => {
                notes.add("cgroup limits could not be determined; see the notes on the host");
                None
            }
            Some(None) => Some(CgroupLimits::default()),
            Some(Some(hierarchy)) => Some(hierarchy.limits_of(root, &pid, size, &mut notes)),
        };
        let notes = notes.into_vec();
        (size, PageLimits { limits, notes })
    };
    let limits = sizes.into_iter().map(of_size).collect();
    let has_nodes = host.pools.iter().any(|row| row.node.is_some());
    let facts = ServerFacts {
        limits,
        allowed_nodes: has_nodes
            .then(|| notes.keep(allowed_nodes(root, &pid)).flatten())
            .flatten(),
        shares_ipc: shares_ipc(root, &pid),
        id,
        memory,
        notes: notes.into_vec(),
        past: Default::default(),
        notes_on_past: Vec::new(),
    };
    // Its number may be another process's by now.
    let is_it = Credentials::read(root, found.pid) == found.users;
    is_it.then_some(facts)
}

/// Asks the program of a PostgreSQL server whose files have changed what the next start asks for.
fn ask_program(id: &mut ServerIdentity, ask: &AskStart<'_>) {
    let ServerProduct::PostgreSql(server) = &mut id.product else {
        return;
    };
    let settings = &mut server.settings;
    let has_changed = changed_since(settings, id.started).is_some();
    let (Some(version), Some(data), true) = (
        id.version.as_deref(),
        &settings.data,
        has_changed && has_configuration(settings),
    ) else {
        return;
    };
    let files = StartFiles {
        version,
        data,
        configured: &settings.configured,
    };
    let answer = match &settings.configured.missing {
        Some(error) => StartAnswer::Unknown(error.clone()),
        None => files
            .question(StartProgram::Running(id.pid))
            .map_or_else(StartAnswer::Unknown, |start| ask(&start)),
    };
    settings.answer = Some(answer);
}

/// The sizes of the pages that a start may ask for.
fn sizes(
    host: &InspectContext<'_>,
    id: &ServerIdentity,
    memory: &ObservedMemory,
) -> BTreeSet<PageSize> {
    let of_host = pools::of_host(&host.pools).map(|row| row.pool.page_size);
    let mapped = memory.shared.iter().flatten();
    let of_segment = mapped
        .filter_map(|mapping| mapping.page_size)
        .filter(|size| Some(*size) > host.base);
    let requested = id.postgresql().and_then(|server| {
        let settings = server.settings.configured.effective();
        requested_by_settings(&settings, &mut Notes::default()).huge_page_size
    });
    of_host
        .chain(of_segment)
        .chain(requested)
        .chain(host.default)
        .collect()
}
