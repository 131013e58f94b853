//! What the inspection of every server of a host shares, and what the files of one server tell.

use std::time::SystemTime;

use crate::PageSize;
use crate::collect::pools::PoolRow;
use crate::model::Asked;
use crate::read::Root;
use crate::read::cgroup::Hierarchy;
use crate::read::meminfo::Meminfo;
use crate::read::oracle::LastStart;
use crate::read::shm_devices::Devices;

/// What is the same for all servers of a host.
pub(super) struct InspectContext<'a> {
    pub(super) root: &'a Root,
    pub(super) taken_at: SystemTime,
    pub(super) default: Option<PageSize>,
    pub(super) base: Option<PageSize>,
    pub(super) devices: Devices,
    /// The hugetlb hierarchy of cgroups, as [`Hierarchy::find`] saw it; `None` if that failed.
    pub(super) hierarchy: Option<Option<Hierarchy>>,
    pub(super) meminfo: Option<Meminfo>,
    pub(super) pools: Vec<PoolRow>,
    pub(super) reserve_percent: u32,
    /// Whether names of mappings tell huge pages.
    pub(super) numbered: bool,
    /// The mount namespace that this program is in.
    pub(super) namespace: Option<String>,
}

/// What the files of a server tell.
pub(super) struct Identity {
    pub(super) name: String,
    pub(super) home: Option<String>,
    pub(super) directory: Option<String>,
    pub(super) version: Option<String>,
    pub(super) system_identifier: Option<String>,
    pub(super) last_start: Option<LastStart>,
    pub(super) asked: Asked,
    /// PostgreSQL's `max_connections`.
    pub(super) max_connections: Option<u64>,
    /// Whether the files that the next start reads were found.
    pub(super) has_configuration: bool,
}

impl InspectContext<'_> {
    /// The files that `pid` sees, where those are not this program's: those of its container.
    pub(super) fn container_of(&self, pid: i32) -> Option<Root> {
        let its = namespace(self.root, &pid.to_string())?;
        let elsewhere = self.namespace.as_ref().is_some_and(|own| *own != its);
        elsewhere.then(|| self.root.below(&format!("/proc/{pid}/root")))
    }
}

/// What tells one mount namespace from another (namespaces(7)); `None` if that may not be seen.
pub(super) fn namespace(root: &Root, process: &str) -> Option<String> {
    root.read_link(&format!("/proc/{process}/ns/mnt")).ok()
}
