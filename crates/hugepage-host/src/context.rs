//! What the inspection of every server of a host shares.

use hugepage_facts::{PoolRow, pools};
use hugepage_kernel::memory::meminfo::{LXCFS, Meminfo};
use hugepage_kernel::{Hierarchy, KernelLimits, Notes, PageSize, Root};
use hugepage_oracle::shm_devices::Devices;

use super::next_start::AskStart;
use super::service_accounts::ServiceAccounts;

/// What is the same for all servers of a host.
pub(super) struct InspectContext<'a> {
    pub(super) root: &'a Root,
    pub(super) default: Option<PageSize>,
    pub(super) base: Option<PageSize>,
    pub(super) devices: Devices,
    pub(super) accounts: ServiceAccounts<'a>,
    /// The hugetlb hierarchy of cgroups, as [`Hierarchy::find`] saw it; `None` if that failed.
    pub(super) hierarchy: Option<Option<Hierarchy>>,
    pub(super) meminfo: Option<Meminfo>,
    pub(super) kernel: KernelLimits,
    pub(super) pools: Vec<PoolRow>,
    /// Who is asked what changed files come to; `None` if nobody is.
    pub(super) ask: Option<&'a AskStart<'a>>,
}

impl<'a> InspectContext<'a> {
    /// Reads it. What could not be read is a note.
    pub(super) fn read(
        root: &'a Root,
        service_accounts: &[String],
        ask: Option<&'a AskStart<'a>>,
        notes: &mut Notes,
    ) -> Self {
        let mut meminfo = notes.keep(Meminfo::read(root));
        let hierarchy = notes.keep(Hierarchy::find(root));
        let pools = hugepage_server::pools::rows(root, hierarchy.as_ref(), notes);
        if let Some(meminfo) = &mut meminfo {
            // Kernels before 4.19 do not show the sum of all pools.
            meminfo.hugetlb = meminfo
                .hugetlb
                .or_else(|| Some(pools::memory(pools::of_host(&pools))));
            if meminfo.is_of_lxcfs {
                notes.add(LXCFS);
            }
        }
        Self {
            root,
            default: meminfo.as_ref().and_then(|meminfo| meminfo.huge_page_size),
            base: notes.keep(root.base_page_size()),
            accounts: ServiceAccounts::read(root, service_accounts),
            devices: notes.keep(Devices::find(root)).unwrap_or_default(),
            hierarchy,
            kernel: KernelLimits::read(root),
            meminfo,
            pools,
            ask,
        }
    }
}
