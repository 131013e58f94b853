//! What was read of a host: plain data, from which everything is decided.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::SystemTime;

use hugepage_kernel::{Bytes, CgroupLimits, KernelLimits, Meminfo, NextBoot, PageSize, Pool};
use serde::{Deserialize, Serialize};

use crate::pools::{self, PoolRow};
use crate::{
    ClusterFacts, ObservedMemory, Owner, Past, PoolHolder, Remembered, ServerIdentity,
    StoppedFacts, Strangers, Unread,
};

/// What was read of a host and its servers. All else is decided from it, so it can be kept and decided again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// The host without its servers.
    pub host: HostFacts,
    /// The servers that count and run.
    pub servers: Vec<ServerFacts>,
}

/// What was read of one running server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerFacts {
    /// What tells it from others, and what its files say.
    pub id: ServerIdentity,
    /// The memory of its processes.
    pub memory: ObservedMemory,
    /// What its control groups let it have of pages of each size.
    #[serde(default)]
    pub limits: BTreeMap<PageSize, PageLimits>,
    /// The NUMA nodes that its cpuset allows; `None` if unknown, and on a host with one node.
    pub allowed_nodes: Option<Vec<u32>>,
    /// Whether it is in the IPC namespace whose segments the host's facts have.
    #[serde(default)]
    pub shares_ipc: bool,
    /// What could not be read of it.
    pub notes: Vec<String>,
    /// What was recorded at its start.
    #[serde(default)]
    pub past: Past,
    /// What could not be read of that.
    #[serde(default)]
    pub notes_on_past: Vec<String>,
}

/// What control groups let a server have of pages of one size.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PageLimits {
    /// The limits; `None` if they are unknown.
    pub limits: Option<CgroupLimits>,
    /// What could not be read of them.
    pub notes: Vec<String>,
}

/// What was read of a host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostFacts {
    /// The host's name.
    pub host_name: Option<String>,
    /// When this was read; for a tree when its files were written.
    pub taken_at: SystemTime,
    /// What the next boot sets; `None` if it could not be read.
    pub next_boot: NextBoot,
    /// The host's memory.
    pub meminfo: Option<Meminfo>,
    /// The size of base pages.
    pub base_page_size: Option<PageSize>,
    /// The sizes of the kernel's huge pages; `None` if they are not visible.
    pub page_sizes: Option<Vec<PageSize>>,
    /// What the kernel limits shared memory by.
    #[serde(default)]
    pub kernel: KernelLimits,
    /// The size of /dev/shm; `None` if unknown.
    pub dev_shm: Option<Bytes>,
    /// Whether it is a tree of files, whose owners are those of whoever made it.
    #[serde(default)]
    pub is_tree: bool,
    /// Whether all processes of the running host are visible.
    #[serde(default)]
    pub shows_all: bool,
    /// All pools.
    pub pools: Vec<PoolRow>,
    /// `transparent_hugepage/enabled`.
    pub transparent_hugepage: Option<String>,
    /// `transparent_hugepage/shmem_enabled`.
    #[serde(default)]
    pub shmem_enabled: Option<String>,
    /// Whether /proc hides the processes of other users, so that servers may run that are not seen.
    pub processes_are_hidden: bool,
    /// Whether this program certainly sees the processes of a container alone.
    pub is_in_container: bool,
    /// Processes that call themselves servers and do not count.
    pub strangers: Strangers,
    /// What other processes have of the pools.
    #[serde(default)]
    pub others: OtherProcesses,
    /// The Oracle instances of oratab that do not run.
    #[serde(default)]
    pub stopped: Vec<StoppedFacts>,
    /// The servers that do not run, where a command looks for them.
    #[serde(default)]
    pub stopped_servers: StoppedServers,
    /// The programs beside database servers that have huge pages, the largest first.
    pub holders: Vec<PoolHolder>,
    /// The users of whom something was not read; the notes say it, too.
    pub unread: Vec<Unread>,
    /// As whom the files of servers that do not run are read, nobody last.
    #[serde(default)]
    pub owners: Vec<Owner>,
    /// What could not be read of the host.
    pub notes: Vec<String>,
}

/// What processes that are of no server have of the pools.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OtherProcesses {
    /// The memory in huge pages of processes of service accounts, outside of containers.
    pub held_by_services: Bytes,
    /// The memory in huge pages of all others, of which each process that has a page of several counts it.
    pub held_by_strangers: Bytes,
    /// What root's processes have mapped of pages of each size and not touched.
    pub promised_to_root: BTreeMap<PageSize, Bytes>,
    /// The users of processes with names of Oracle's, also of an instance that starts.
    pub users_of_oracle: BTreeSet<u32>,
    /// Whether a program with the name of one that runs guests is there.
    pub runs_guests: bool,
    /// The names of the users of System V segments that no process has attached.
    pub names: BTreeMap<u32, String>,
}

/// What was read of servers that do not run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StoppedServers {
    /// Each place where a PostgreSQL cluster was looked for, and what is there; `None` for what is known and no such cluster. Several
    /// readers may have looked at one place.
    pub places: Vec<(PathBuf, Option<ClusterFacts>)>,
    /// Servers that were seen here.
    pub remembered: Vec<Remembered>,
    /// Whether Grid Infrastructure is there, which keeps a list of databases of its own.
    pub has_grid_registry: bool,
    /// Lists of servers that could not be read.
    pub unread_lists: Vec<UnreadList>,
    /// What could not be read of them.
    pub notes: Vec<String>,
    /// The users of whom something was not read for them alone; the notes say it, too.
    pub unread: Vec<Unread>,
}

/// A list of servers that could not be read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UnreadList {
    /// What it lists: `postgresql`, `history`.
    pub kind: String,
    /// Where it is.
    pub name: String,
    /// Why it was not read.
    pub why: String,
}

impl HostFacts {
    /// The size of huge pages for mappings that ask for no size; `None` if there is none, or it is unknown.
    pub fn default_page_size(&self) -> Option<PageSize> {
        self.meminfo.as_ref()?.huge_page_size
    }

    /// The pool of `size`.
    pub fn pool(&self, size: PageSize) -> Option<&Pool> {
        pools::of_size(&self.pools, size).map(|row| &row.pool)
    }
}
