//! Inspects one server: observes its processes, identifies it and finds what it asks for.

use std::time::SystemTime;

use hugepage_assess::model::Past;
use hugepage_kernel::InstanceFiles;
use hugepage_kernel::notes::Notes;
use hugepage_kernel::proc::process;
use serde::{Deserialize, Serialize};

use super::context::InspectContext;
use super::discover::DiscoveredServer;
use super::identify::ServerIdentity;
use super::memory::ObservedMemory;
use super::processes::Credentials;
use super::request::ServerRequest;

/// All that a server shows by itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct InspectedServer {
    pub(super) id: ServerIdentity,
    pub(super) memory: ObservedMemory,
    pub(super) request: ServerRequest,
    /// What could not be read of it.
    pub(super) notes: Vec<String>,
    /// What was recorded at its start.
    pub(super) past: Past,
    /// What could not be read of that.
    pub(super) notes_on_past: Vec<String>,
}

impl InspectContext<'_> {
    /// `None` for a postgres program without shared memory, such as one that initialises or only answers a question.
    pub(super) fn inspect(&self, found: &DiscoveredServer) -> Option<InspectedServer> {
        let mut notes = Notes::default();
        let started = self.started(found.pid, &mut notes);
        let (memory, is_in_shm) = self.observe(found, &mut notes)?;
        let files = &InstanceFiles::of_process(self.root, found.pid);
        let (id, settings) = self.identify(found, files, started, &memory, is_in_shm, &mut notes);
        let request = self.request(files, &id, settings, &memory, &mut notes);
        let (past, notes_on_past) = Default::default();
        // Its number may be another process's by now.
        let is_it = Credentials::read(self.root, found.pid).ok().flatten() == found.users;
        let notes = notes.into_vec();
        is_it.then_some(InspectedServer { id, memory, request, notes, past, notes_on_past })
    }

    /// When the process started, by the clock now; `None` if it has ended, or a note says why it is unknown.
    fn started(&self, pid: i32, notes: &mut Notes) -> Option<SystemTime> {
        let stat = notes.keep(process::stat(self.root, pid)).flatten()?;
        let booted = self.booted.get_or_init(|| process::boot_time(self.root).map_err(|error| error.to_string()));
        notes.keep(booted.as_ref())?.checked_add(stat.start_after_boot())
    }
}
