//! Processes beside database servers that have huge pages: virtual machines, DPDK, MySQL, Java.

use std::collections::{BTreeMap, BTreeSet};

use hugepage_assess::model::{PagesOfStrangers, PoolHolder};
use hugepage_assess::pools::{self, PoolRow};
use hugepage_kernel::mapping::maps::{self, Mapping};
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::{Bytes, PageSize, Pages};

use super::context::InspectContext;
use super::control_group::container;
use super::glances::Glances;
use super::inspect::InspectedServer;
use super::processes::{Credentials, ProcessGlance};
use crate::escape;

/// So many programs are named, those with the most pages.
const MAX_HOLDERS: usize = 10;
/// With more processes, which of them map files is not looked at.
const MAX_PROCESSES: usize = 100;

impl InspectContext<'_> {
    /// The programs that have huge pages and are no database server, by their names and users, the largest first. A process may have
    /// more than it shows, because processes share page tables of huge pages (`HugetlbPages` in proc(5)).
    pub(super) fn holders(&self, processes: &[(ProcessGlance, bool)]) -> Vec<PoolHolder> {
        let mut found: BTreeMap<(String, String, bool), (u64, Bytes, bool)> = BTreeMap::new();
        let is_looked_at = processes.len() <= MAX_PROCESSES;
        let mut seen = BTreeSet::new();
        let used = |row: &PoolRow| (row.pool.page_size, row.pool.nr.saturating_sub(row.pool.free));
        let used: Vec<_> = pools::of_host(&self.pools).map(used).filter(|(_, pages)| *pages > Pages(0)).collect();
        let in_use = sum(used.iter().map(|(size, pages)| size.times(*pages)));
        for (process, counts) in processes {
            let user = match &process.users {
                Some(Credentials { real, .. }) => escape::line(&self.accounts.name(*real)).into_owned(),
                None => "unknown user".to_owned(),
            };
            let before = if is_looked_at { self.mapped_before(&mut seen, process.pid) } else { Bytes(0) };
            let touched = process.status.hugetlb_pages.unwrap_or_default().saturating_sub(before);
            let sum = found.entry((escape::line(&process.name).into_owned(), user, *counts)).or_default();
            // Pages that cannot be told apart are counted for each process, but no more than there are.
            let all = sum.1.saturating_add(touched);
            *sum = (sum.0 + 1, all.min(in_use), sum.2 || all > in_use);
        }
        // The kernel does not say of which pool they are.
        let size = if let [(size, _)] = used[..] { Some(size) } else { None };
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

    /// Adds the files and shared memory that `pid` has mapped to those `seen`, by device and inode. Returns what of its huge pages was seen.
    fn mapped_before(&self, seen: &mut BTreeSet<((u32, u32), u64)>, pid: i32) -> Bytes {
        let mapped = maps::read(self.root, &maps::path(pid), |mapping| mapping.inode > 0).unwrap_or_default();
        let is_huge = |one: &&Mapping| {
            let size = self.devices.page_size(one.device);
            size.is_some_and(|size| size > PageSize::base()) || one.path.starts_with("/anon_hugepage")
        };
        let before = mapped.iter().filter(|one| seen.contains(&(one.device, one.inode))).filter(is_huge);
        let before = sum(before.map(Mapping::size));
        seen.extend(mapped.iter().map(|one| (one.device, one.inode)));
        before
    }

    /// What root's processes have mapped of pages of each size and not touched: these pages may be promised to them. Only root's are
    /// looked at: whoever is hostile could have as many mappings as it likes.
    pub(super) fn promised_to_root(&self, processes: &[(i32, Bytes)]) -> BTreeMap<PageSize, Bytes> {
        let of_host = |(pid, _): &&(i32, Bytes)| container(self.root, *pid).is_none();
        let of_size = |size: PageSize| {
            let is_huge = |mapping: &Mapping| self.devices.page_size(mapping.device) == Some(size);
            let promised = |(pid, touched): &(i32, Bytes)| {
                let mappings = maps::read(self.root, &maps::path(*pid), is_huge).unwrap_or_default();
                sum(mappings.iter().map(Mapping::size)).saturating_sub(*touched)
            };
            (size, sum(processes.iter().filter(of_host).map(promised)))
        };
        pools::of_host(&self.pools).map(|row| of_size(row.pool.page_size)).collect()
    }
}

/// What no service account has of `pool`, of the pages in use that are none of these servers'. All that is not seen to be a service
/// account's, because a page may be promised, or be in a file that nobody has mapped; but where not all is seen, what is seen to be
/// another user's. `promised`: what is promised to root's processes of each size; `None` if not all is seen.
pub(super) fn strangers(
    pool: &Pool,
    servers: &[InspectedServer],
    glances: &Glances,
    promised: Option<&BTreeMap<PageSize, Bytes>>,
    holders: &[PoolHolder],
) -> PagesOfStrangers {
    let size = pool.page_size;
    let of_size = servers.iter().filter(|server| server.request.pool_state.huge_page_size == Some(size));
    let held = |server: &InspectedServer| server.request.current_start().own();
    let held = of_size.map(held).fold(Pages(0), Pages::saturating_add);
    let others = pool.in_use().unwrap_or_default().saturating_sub(held);
    let pages = match promised {
        Some(promised) => {
            let promised = promised.get(&size).copied().unwrap_or_default();
            let unexplained = others.saturating_sub(size.pages_to_hold(glances.held_by_services));
            unexplained.saturating_sub(size.pages_to_hold(promised))
        }
        None => others.min(size.pages_within(glances.held_by_strangers)),
    };
    let largest = holders.iter().find(|holder| !holder.counts).filter(|_| pages > Pages(0)).cloned();
    PagesOfStrangers { pages, largest }
}

fn sum(all: impl Iterator<Item = Bytes>) -> Bytes {
    all.fold(Bytes(0), Bytes::saturating_add)
}
