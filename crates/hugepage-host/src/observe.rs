//! Observes the processes of one server: what the kernel shows of their memory.

use std::time::SystemTime;

use hugepage_assess::assessment::page_tables::PageTables;
use hugepage_kernel::notes::Notes;
use hugepage_kernel::proc::process;
use hugepage_kernel::proc::rlimit::{self, LockedMemory};
use hugepage_kernel::{Bytes, PageSize};

use super::context::InspectContext;
use super::discover::{DiscoveredKind, DiscoveredServer};
use super::memory::InstanceMemory;
use super::oracle;

/// The memory of a server's processes.
#[derive(Clone, Debug)]
pub struct ObservedMemory {
    /// What they share; `None` if it may not be read.
    pub shared: Option<InstanceMemory>,
    /// The Managed Global Area of Oracle: files of /dev/shm beside the SGA (18c and later). `None` if its memory may not be
    /// read, and for PostgreSQL.
    pub managed_global_area: Option<Bytes>,
    /// Whether the SGA is files of /dev/shm; `None` as for the Managed Global Area.
    pub(super) is_sga_in_files: Option<bool>,
    /// The page tables of all processes.
    pub page_tables: PageTables,
    /// The private memory (`RssAnon`) of the median of the processes; `None` if unknown, as before Linux 4.5.
    pub private_memory: Option<Bytes>,
    /// The memory that the server may lock.
    pub memlock: Option<LockedMemory>,
    /// Whether one of the processes certainly has huge pages (`HugetlbPages` in its status).
    pub has_hugetlb_pages: bool,
}

impl InspectContext<'_> {
    /// `None` for a postgres program without shared memory, such as one that initialises or only answers a question.
    pub(super) fn observe(&self, found: &DiscoveredServer, notes: &mut Notes) -> Option<ObservedMemory> {
        let is_oracle = matches!(found.who, DiscoveredKind::Oracle(_));
        let memlock = notes.keep(rlimit::locked_memory(self.root, found.pid)).flatten();
        if found.undecided > 0 {
            notes.add(format!(
                "{} processes are of this instance or of another one with its SID: run this as root to count them",
                found.undecided
            ));
        }
        let mut shared = self.memory(found, notes);
        let sga = shared.as_mut().filter(|_| is_oracle).map(oracle::keep_sga);
        let (is_sga_in_files, managed_global_area) = sga.unzip();
        let is_empty = |memory: &InstanceMemory| memory.mappings.is_empty();
        if !is_oracle && shared.as_ref().is_some_and(is_empty) {
            return None;
        }
        let processes = || found.processes.iter();
        let base = self.base.unwrap_or_else(PageSize::base);
        Some(ObservedMemory {
            shared: shared.filter(|memory| !is_empty(memory)),
            managed_global_area,
            is_sga_in_files,
            page_tables: if found.undecided == 0 { PageTables::sum(processes(), base) } else { PageTables::default() },
            private_memory: median(processes().filter_map(|process| process.rss_anon)),
            memlock,
            has_hugetlb_pages: processes().any(|status| status.hugetlb_pages.is_some_and(|size| size.0 > 0)),
        })
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

fn median(sizes: impl Iterator<Item = Bytes>) -> Option<Bytes> {
    let mut sizes: Vec<_> = sizes.collect();
    sizes.sort_unstable();
    sizes.get(sizes.len() / 2).copied()
}
