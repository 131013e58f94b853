//! All that advice is made of: the status of one server, and what its host has beside it.

use crate::Bytes;
use crate::assess::Status;
use crate::assess::page_tables::PageTables;
use crate::collect::CgroupView;
use crate::collect::pools::{self, PoolRow};
use crate::notes::Notes;
use crate::read::boot::NextBoot;
use crate::read::{Root, pressure, sysctl, thp};

/// What only the server itself can tell.
#[derive(Clone, Debug)]
pub struct Server {
    /// Its major version.
    pub major: u32,
    /// `max_connections`.
    pub max_connections: u64,
    /// `min_dynamic_shared_memory`.
    pub min_dynamic_shared_memory: Bytes,
    /// The most that parallel workers may share: `max_parallel_workers` of `work_mem` times `hash_mem_multiplier` each.
    pub parallel_memory: Bytes,
    /// The page tables of its processes.
    pub page_tables: PageTables,
}

/// One server on its host.
#[derive(Clone, Debug)]
pub struct Situation {
    /// The assessment.
    pub status: Status,
    /// From the server.
    pub server: Server,
    /// All pools of the host.
    pub pools: Vec<PoolRow>,
    /// What the next boot sets; `None` if it could not be read.
    pub next_boot: Option<NextBoot>,
    /// `transparent_hugepage/enabled`.
    pub thp_enabled: Option<String>,
    /// `vm.swappiness`.
    pub swappiness: Option<u64>,
    /// `vm.min_free_kbytes`.
    pub min_free: Option<Bytes>,
    /// `vm.overcommit_memory`.
    pub overcommit_memory: Option<u64>,
    /// The hundredths of the last five minutes in which some task waited for memory.
    pub pressure: Option<f64>,
}

/// Adds the host's side to what is known of the server.
pub fn situation(root: &Root, status: Status, server: Server, view: CgroupView<'_>, notes: &mut Notes) -> Situation {
    let mut number = |name: &str| {
        let text = notes.keep(sysctl::running(root, name)).flatten()?;
        text.parse::<u64>().ok()
    };
    let swappiness = number("vm.swappiness");
    let min_free = number("vm.min_free_kbytes").map(Bytes::from_kib);
    let overcommit_memory = number("vm.overcommit_memory");
    Situation {
        status,
        server,
        pools: pools::rows(root, view, notes),
        next_boot: notes.keep(NextBoot::read(root)),
        thp_enabled: notes.keep(thp::choice(root, "enabled")).flatten(),
        swappiness,
        min_free,
        overcommit_memory,
        pressure: pressure(root),
    }
}

/// Kernels built with PSI and booted without it have the file, and refuse to read it.
fn pressure(root: &Root) -> Option<f64> {
    let average = pressure::memory(root).into_iter().find(|one| one.tasks == "some" && one.window == "avg300")?;
    average.percent.parse().ok()
}
