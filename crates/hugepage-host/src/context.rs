//! What the inspection of every server of a host shares, and what the files of one server tell.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::time::SystemTime;

use hugepage_assess::model::{Asked, Clusterware};
use hugepage_assess::pools::PoolRow;
use hugepage_kernel::cgroups::cgroup::Hierarchy;
use hugepage_kernel::mapping::shm_devices::Devices;
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::{PageSize, Root};
use hugepage_oracle::readers::LastStart;
use hugepage_oracle::readers::oratab::OratabEntry;

use super::next_start::AskStart;
use super::pending::Settings;
use super::postgresql::Configured;
use super::service_accounts::ServiceAccounts;

/// What is the same for all servers of a host.
pub(super) struct InspectContext<'a> {
    pub(super) root: &'a Root,
    /// [`boot_time`](hugepage_kernel::proc::process::boot_time); the error is a note.
    pub(super) booted: OnceCell<Result<SystemTime, String>>,
    pub(super) default: Option<PageSize>,
    pub(super) base: Option<PageSize>,
    pub(super) devices: Devices,
    pub(super) accounts: ServiceAccounts,
    /// The host's oratab, with the notes on what could not be read of it.
    pub(super) oratab: OnceCell<(Vec<OratabEntry>, Vec<String>)>,
    /// The hugetlb hierarchy of cgroups, as [`Hierarchy::find`] saw it; `None` if that failed.
    pub(super) hierarchy: Option<Option<Hierarchy>>,
    pub(super) meminfo: Option<Meminfo>,
    pub(super) pools: Vec<PoolRow>,
    pub(super) reserve_percent: u32,
    /// Whether the names of mappings show huge pages.
    pub(super) numbered: bool,
    /// Who is asked what changed files come to; `None` where nobody is.
    pub(super) ask: Option<&'a AskStart<'a>>,
}

/// What the files of a server tell.
pub(super) struct Identity {
    pub(super) name: String,
    pub(super) home: Option<String>,
    /// The names of its database (Oracle), as in [`Instance`](super::Instance).
    pub(super) database: Option<Vec<String>>,
    pub(super) directory: Option<String>,
    pub(super) version: Option<String>,
    pub(super) system_identifier: Option<String>,
    pub(super) last_start: Option<LastStart>,
    /// What the files of an Oracle instance say of its next start.
    pub(super) settings: Option<Settings>,
    pub(super) asked: Asked,
    /// PostgreSQL's `max_connections`.
    pub(super) max_connections: Option<u64>,
    /// Whether the files that the next start reads were found.
    pub(super) has_configuration: bool,
    /// The most submissions that a ring of io_uring has room for; `None` for a product without.
    pub(super) ring_entries: Option<u64>,
    /// The file of PostgreSQL's configuration that has changed last, and when.
    pub(super) last_change: Option<(SystemTime, PathBuf)>,
    /// All settings of a PostgreSQL server.
    pub(super) configured: Option<Configured>,
    /// Grid Infrastructure of an Oracle instance.
    pub(super) clusterware: Option<Clusterware>,
}
