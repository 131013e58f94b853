//! What the inspection of every server of a host shares, and the settings of one server.

use std::cell::OnceCell;
use std::time::SystemTime;

use hugepage_assess::model::Requested;
use hugepage_assess::pools::PoolRow;
use hugepage_kernel::cgroups::cgroup::Hierarchy;
use hugepage_kernel::mapping::shm_devices::Devices;
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::{PageSize, Root};
use hugepage_oracle::settings::Settings;

use super::next_start::AskStart;
use super::postgresql::PostgreSqlSettings;
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
    /// The hugetlb hierarchy of cgroups, as [`Hierarchy::find`] saw it; `None` if that failed.
    pub(super) hierarchy: Option<Option<Hierarchy>>,
    pub(super) meminfo: Option<Meminfo>,
    /// The lines of [`mounts::PATH`](hugepage_kernel::host::mounts::PATH); none if they could not be read.
    pub(super) mounts: String,
    pub(super) pools: Vec<PoolRow>,
    /// Who is asked what changed files come to; `None` if nobody is.
    pub(super) ask: Option<&'a AskStart<'a>>,
}

/// What the files of a server say of the start that runs, and of the next one.
pub(super) enum ServerSettings {
    PostgreSql(PostgreSqlSettings),
    Oracle(Requested, Settings),
}

impl ServerSettings {
    /// What the files ask for.
    pub(super) const fn requested(&self) -> Requested {
        match self {
            Self::PostgreSql(settings) => settings.requested,
            Self::Oracle(requested, _) => *requested,
        }
    }
}
