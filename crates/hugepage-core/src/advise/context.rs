//! The input of the recommendations: the status of one server, its settings, and its host.

use crate::Bytes;
use crate::assess::Status;
use crate::assess::page_tables::PageTables;
use crate::collect::CgroupView;
use crate::collect::pools::{self, PoolRow};
use crate::notes::Notes;
use crate::read::boot::{NextBoot, PoolAtBoot};
use crate::read::{Root, pressure, sysctl, thp};

/// Facts that only the server itself knows.
#[derive(Clone, Debug)]
pub struct Server {
    /// Its major version.
    pub major: u32,
    /// `max_connections`.
    pub max_connections: u64,
    /// The size that the server gave its main segment, before rounding up to whole pages; `None` if unknown.
    pub shared_memory: Option<Bytes>,
    /// `min_dynamic_shared_memory`.
    pub min_dynamic_shared_memory: Bytes,
    /// The maximum that parallel workers can share: `max_parallel_workers` of `work_mem` times `hash_mem_multiplier` each.
    pub parallel_memory: Bytes,
    /// The page tables of its processes.
    pub page_tables: PageTables,
}

/// One server on its host.
#[derive(Clone, Debug)]
pub struct AdviceContext {
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
    /// Percentage of the last five minutes in which at least one task waited for memory.
    pub pressure: Option<f64>,
}

impl AdviceContext {
    /// Adds what the host has to what is known of the server.
    pub fn collect(root: &Root, status: Status, server: Server, view: CgroupView<'_>, notes: &mut Notes) -> Self {
        let mut number = |name: &str| {
            let text = notes.keep(sysctl::running(root, name)).flatten()?;
            text.parse::<u64>().ok()
        };
        let swappiness = number("vm.swappiness");
        let min_free = number("vm.min_free_kbytes").map(Bytes::from_kib);
        let overcommit_memory = number("vm.overcommit_memory");
        let next_boot = notes.keep(NextBoot::read(root));
        if let (Some(boot), Some(pool)) = (&next_boot, status.facts.pool.known()) {
            boot.not_read.iter().for_each(|note| notes.add(note.clone()));
            if let PoolAtBoot::Unknown(why) = boot.pool(pool.page_size, status.facts.is_default(pool.page_size)) {
                notes.add(format!("the pool of {} pages after the next boot is unknown: {why}", pool.page_size));
            }
        }
        Self {
            status,
            server,
            pools: pools::rows(root, view, notes),
            next_boot,
            thp_enabled: notes.keep(thp::choice(root, "enabled")).flatten(),
            swappiness,
            min_free,
            overcommit_memory,
            pressure: pressure(root),
        }
    }
}

/// `some avg300` of /proc/pressure/memory. Kernels that were booted without PSI have the file but refuse to read it.
fn pressure(root: &Root) -> Option<f64> {
    let average = pressure::memory(root).into_iter().find(|one| one.tasks == "some" && one.window == "avg300")?;
    average.percent.parse().ok()
}
