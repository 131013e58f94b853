//! Processes beside database servers that have huge pages: virtual machines, DPDK, MySQL, Java.

use std::collections::{BTreeMap, BTreeSet};

use hugepage_assess::model::{PagesOfStrangers, PoolHolder};
use hugepage_assess::pools::{self, PoolRow};
use hugepage_kernel::mapping::maps::{self, Mapping};
use hugepage_kernel::mapping::shm_devices::Devices;
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::proc::credentials::Credentials;
use hugepage_kernel::proc::glance::ProcessGlance;
use hugepage_kernel::{Bytes, PageSize, Pages, Root, escape};

use super::container::container;
use super::context::InspectContext;
use super::glances::Glances;
use super::inspect::InspectedServer;
use super::service_accounts::ServiceAccounts;

/// So many programs are named, those with the most pages.
const MAX_HOLDERS: usize = 10;
/// With more processes, which of them map files is not looked at.
const MAX_PROCESSES: usize = 100;

/// The programs that have huge pages and are no database server, by their names and users, the largest first. A process may
/// have more than it shows, because processes share page tables of huge pages (`HugetlbPages` in proc(5)).
pub(super) fn holders(
    root: &Root,
    accounts: &ServiceAccounts,
    pools: &[PoolRow],
    devices: &Devices,
    processes: &[(i32, ProcessGlance, bool)],
) -> Vec<PoolHolder> {
    let mut found: BTreeMap<(String, String, bool), (u64, Bytes, bool)> = BTreeMap::new();
    let is_looked_at = processes.len() <= MAX_PROCESSES;
    let mut mapped = Mapped::default();
    let in_use = |row: &PoolRow| row.pool.page_size.times(row.pool.nr.saturating_sub(row.pool.free));
    let in_use = pools::of_host(pools).map(in_use).fold(Bytes(0), Bytes::saturating_add);
    for (pid, process, counts) in processes {
        let user = match &process.credentials {
            Some(Credentials { real, .. }) => escape::line(&accounts.name(root, *real)).into_owned(),
            None => "unknown user".to_owned(),
        };
        let before = if is_looked_at { mapped.add(root, devices, *pid) } else { Bytes(0) };
        let touched = process.status.hugetlb_pages.unwrap_or_default().saturating_sub(before);
        let sum = found.entry((escape::line(&process.name).into_owned(), user, *counts)).or_default();
        // Pages that cannot be told apart are counted for each process, but no more than there are.
        let all = sum.1.saturating_add(touched);
        *sum = (sum.0 + 1, all.min(in_use), sum.2 || all > in_use);
    }
    // The kernel does not say of which pool they are.
    let size = size_in_use(pools);
    let holder = |((name, user, counts), (processes, memory, is_bound))| PoolHolder {
        name,
        user,
        processes,
        memory,
        pages: size.map(|size| size.pages_within(memory)),
        is_bound,
        counts,
    };
    let mut holders: Vec<_> = found.into_iter().map(holder).collect();
    holders.sort_by_key(|holder| std::cmp::Reverse(holder.memory));
    holders.truncate(MAX_HOLDERS);
    holders
}

/// The files and shared memory that these processes have mapped, by device and inode.
#[derive(Default)]
struct Mapped(BTreeSet<((u32, u32), u64)>);

impl Mapped {
    /// Adds what `pid` has mapped. Returns what that is of huge pages that a process before it has mapped, too.
    fn add(&mut self, root: &Root, devices: &Devices, pid: i32) -> Bytes {
        let mapped = maps::read(root, &maps::path(pid), |mapping| mapping.inode > 0).unwrap_or_default();
        let is_huge = |one: &&Mapping| {
            let size = devices.page_size(one.device);
            size.is_some_and(|size| size > PageSize::base()) || one.path.starts_with("/anon_hugepage")
        };
        let before = mapped.iter().filter(|one| self.0.contains(&(one.device, one.inode))).filter(is_huge);
        let before = before.map(Mapping::size).fold(Bytes(0), Bytes::saturating_add);
        self.0.extend(mapped.iter().map(|one| (one.device, one.inode)));
        before
    }
}

/// What no service account has of `pool`, of the pages in use that are none of these servers'. All that is not seen to be a service
/// account's, because a page may be promised, or be in a file that nobody has mapped; but where not all is seen, what is seen to be
/// another user's. `promised`: what is promised to root's processes of each size; `None` if not all is seen.
pub(super) fn strangers(
    pool: &Pool,
    servers: &[InspectedServer],
    glances: &Glances,
    promised: Option<&[(PageSize, Bytes)]>,
    holders: &[PoolHolder],
) -> PagesOfStrangers {
    let size = pool.page_size;
    let of_size = servers.iter().filter(|server| server.request.pool_state.huge_page_size == Some(size));
    let held = |server: &InspectedServer| server.request.current_start().own();
    let held = of_size.map(held).fold(Pages(0), Pages::saturating_add);
    let others = pool.in_use().unwrap_or_default().saturating_sub(held);
    let pages = match promised {
        Some(promised) => {
            let promised = promised.iter().find(|(of, _)| *of == size).map_or(Bytes(0), |(_, memory)| *memory);
            let unexplained = others.saturating_sub(size.pages_to_hold(glances.held_by_services));
            unexplained.saturating_sub(size.pages_to_hold(promised))
        }
        None => others.min(size.pages_within(glances.held_by_strangers)),
    };
    let largest = holders.iter().find(|holder| !holder.counts).filter(|_| pages > Pages(0)).cloned();
    PagesOfStrangers { pages, largest }
}

/// What root's processes have mapped of pages of `size` and not touched: these pages may be promised to them. Only root's are looked
/// at: whoever is hostile could have as many mappings as it likes.
pub(super) fn promised_to_root(host: &InspectContext<'_>, size: PageSize, processes: &[(i32, Bytes)]) -> Bytes {
    let root = host.root;
    let promised = |(pid, touched): &(i32, Bytes)| {
        if container(root, *pid).is_some() {
            return Bytes(0);
        }
        let is_huge = |mapping: &Mapping| host.devices.page_size(mapping.device) == Some(size);
        let mappings = maps::read(root, &maps::path(*pid), is_huge).unwrap_or_default();
        let mapped = mappings.iter().map(Mapping::size).fold(Bytes(0), Bytes::saturating_add);
        mapped.saturating_sub(*touched)
    };
    processes.iter().map(promised).fold(Bytes(0), Bytes::saturating_add)
}

/// The page size of the one pool that has pages in use; `None` if there are several, or none.
fn size_in_use(pools: &[PoolRow]) -> Option<PageSize> {
    let mut used = pools::of_host(pools).filter(|row| row.pool.nr.saturating_sub(row.pool.free) > Pages(0));
    let size = used.next()?.pool.page_size;
    used.next().is_none().then_some(size)
}
