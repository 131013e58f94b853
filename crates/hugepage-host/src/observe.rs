//! Observes the processes of one server: what the kernel shows of their memory.

use std::time::SystemTime;

use hugepage_assess::assessment::page_tables::PageTables;
use hugepage_assess::model::{Landing, RESIZABLE, Segment};
use hugepage_kernel::mapping::maps::Mapping;
use hugepage_kernel::notes::Notes;
use hugepage_kernel::proc::rlimit::{self, Rlimit};
use hugepage_kernel::proc::{namespace, process};
use hugepage_kernel::{Bytes, PageSize, ReadError};
use hugepage_oracle::sga;
use hugepage_server::segments::may_be_main;
use hugepage_server::server::thp_in_use;
use serde::{Deserialize, Serialize};

use super::context::InspectContext;
use super::discover::{DiscoveredKind, DiscoveredServer};
use super::memory::{self, InstanceMemory};

/// The memory of a server's processes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ObservedMemory {
    /// What they share; `None` if it may not be read.
    pub shared: Option<InstanceMemory>,
    /// The page tables of all processes.
    pub page_tables: PageTables,
    /// The memory that the server may lock.
    pub memlock: Option<Rlimit>,
}

impl InspectContext<'_> {
    /// The memory, and what the files of /dev/shm are that an Oracle instance has, where they may be seen. `None` for a postgres
    /// program without shared memory, such as one that initialises or only answers a question.
    pub(super) fn observe(
        &self,
        found: &DiscoveredServer,
        notes: &mut Notes,
    ) -> Option<(ObservedMemory, Option<bool>)> {
        let is_oracle = matches!(found.who, DiscoveredKind::Oracle(_));
        let memlock = notes.keep(rlimit::locked_memory(self.root, found.pid)).flatten();
        if found.undecided > 0 {
            notes.add(format!(
                "{} processes are of this instance or of another one with its SID: run this as root to count them",
                found.undecided
            ));
        }
        let mut shared = self.memory(found, notes);
        let is_in_shm = shared.as_mut().filter(|_| is_oracle).map(|memory| sga::keep_sga(&mut memory.mappings));
        let is_empty = |memory: &InstanceMemory| memory.mappings.is_empty();
        if !is_oracle && shared.as_ref().is_some_and(is_empty) {
            return None;
        }
        let base = self.base.unwrap_or_else(PageSize::base);
        let memory = ObservedMemory {
            shared: shared.filter(|memory| !is_empty(memory)),
            page_tables: if found.undecided == 0 {
                PageTables::sum(found.processes.iter(), base)
            } else {
                PageTables::default()
            },
            memlock,
        };
        Some((memory, is_in_shm))
    }

    /// The mappings of one process stand for the whole server, because each of its processes attaches all of it.
    pub(super) fn memory(&self, found: &DiscoveredServer, notes: &mut Notes) -> Option<InstanceMemory> {
        let is_postgresql = matches!(found.who, DiscoveredKind::PostgreSql(_));
        let of_container = (!is_postgresql && namespace::container(self.root, found.pid).is_some())
            .then(|| notes.keep(self.devices.with_mounts_of(self.root, found.pid)))
            .flatten();
        let devices = of_container.as_ref().unwrap_or(&self.devices);
        let wanted = |mapping: &Mapping| match is_postgresql {
            true => may_be_main(mapping),
            false => sga::may_be_sga(mapping, devices, self.base),
        };
        match memory::mapped(self.root, found.pid, devices, wanted) {
            Ok(mut memory) => {
                if is_postgresql
                    && let Some(main) = memory.mappings.iter().max_by_key(|mapping| mapping.size()).cloned()
                {
                    if main.inaccessible > Bytes(0) {
                        notes.add(RESIZABLE);
                        return None;
                    }
                    memory.mappings = vec![main];
                }
                Some(memory)
            }
            Err(ReadError::Io { source, path, .. }) if source.kind() == std::io::ErrorKind::PermissionDenied => {
                notes.add(format!("\"{}\" may not be read: run this as root, or with CAP_SYS_PTRACE", path.display()));
                None
            }
            Err(error) => {
                notes.add(error.to_string());
                None
            }
        }
    }

    /// Only a walk of the server's page tables could show whether base pages were collapsed into transparent huge
    /// pages. The server itself may do that; no other process should.
    pub(super) fn unless_transparent(&self, mut segment: Segment, pid: i32, notes: &mut Notes) -> Segment {
        if segment.landing == Landing::Base && thp_in_use(self.meminfo.as_ref()) {
            segment.landing = Landing::Unknown;
            notes.add(format!(
                "some shared memory of this host is in transparent huge pages; only a walk of its page tables could tell \
                 whether that of process {pid} is"
            ));
        }
        segment
    }

    /// When the process started, by the clock now; `None` if it has ended, or a note says why it is unknown.
    pub(super) fn started(&self, pid: i32, notes: &mut Notes) -> Option<SystemTime> {
        let stat = notes.keep(process::stat(self.root, pid)).flatten()?;
        match self.booted.get_or_init(|| process::boot_time(self.root).map_err(|error| error.to_string())) {
            Ok(booted) => booted.checked_add(stat.start_after_boot()),
            Err(why) => {
                notes.add(why);
                None
            }
        }
    }
}
