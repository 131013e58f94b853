//! Processes beside database servers that have huge pages: virtual machines, DPDK, MySQL, Java.

use std::collections::{BTreeMap, BTreeSet};

use hugepage_facts::{PoolHolder, PoolRow, escape, pools};
use hugepage_kernel::mapping::maps::{self, Mapping};
use hugepage_kernel::{Bytes, PageSize, Pages};

use super::context::InspectContext;
use super::control_group::container;
use super::processes::{Credentials, ProcessGlance};

/// So many programs are named, those with the most pages.
const MAX_HOLDERS: usize = 10;
/// With more processes, which of them map files is not looked at.
const MAX_PROCESSES: usize = 100;

/// The programs that have huge pages and are no database server, by their names and users, the largest first. A process may have
/// more than it shows, because processes share page tables of huge pages (`HugetlbPages` in proc(5)).
/// `reads_maps`: whether their mappings are looked at, which the kernel writes as slowly as their owner likes.
pub(super) fn holders(
    host: &InspectContext<'_>,
    processes: &[(ProcessGlance, bool)],
    reads_maps: bool,
) -> Vec<PoolHolder> {
    let mut found: BTreeMap<(String, String, bool), (u64, Bytes, bool)> = BTreeMap::new();
    let is_looked_at = reads_maps && processes.len() <= MAX_PROCESSES;
    let mut seen = BTreeSet::new();
    let used = |row: &PoolRow| {
        (
            row.pool.page_size,
            row.pool.nr.saturating_sub(row.pool.free),
        )
    };
    let used: Vec<_> = pools::of_host(&host.pools)
        .map(used)
        .filter(|(_, pages)| *pages > Pages(0))
        .collect();
    let in_use = used.iter().map(|(size, pages)| size.times(*pages)).sum();
    for (process, counts) in processes {
        let user = match &process.users {
            Some(Credentials { real, .. }) => escape::line(&host.accounts.name(*real)).into_owned(),
            None => "unknown user".to_owned(),
        };
        let before = if is_looked_at {
            mapped_before(host, &mut seen, process.pid)
        } else {
            Bytes(0)
        };
        let touched = process
            .status
            .hugetlb_pages
            .unwrap_or_default()
            .saturating_sub(before);
        let sum = found
            .entry((escape::line(&process.name).into_owned(), user, *counts))
            .or_default();
        // Pages that cannot be told apart are counted for each process, but no more than there are.
        let all = sum.1.saturating_add(touched);
        *sum = (sum.0 + 1, all.min(in_use), sum.2 || all > in_use);
    }
    // The kernel does not say of which pool they are.
    let size = if let [(size, _)] = used[..] {
        Some(size)
    } else {
        None
    };
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
fn mapped_before(
    host: &InspectContext<'_>,
    seen: &mut BTreeSet<((u32, u32), u64)>,
    pid: i32,
) -> Bytes {
    let mapped =
        maps::read(host.root, &maps::path(pid), |mapping| mapping.inode > 0).unwrap_or_default();
    let is_huge = |one: &&Mapping| {
        let size = host.devices.page_size(one.device);
        size.is_some_and(|size| size > PageSize::base()) || one.path.starts_with("/anon_hugepage")
    };
    let before = mapped
        .iter()
        .filter(|one| seen.contains(&(one.device, one.inode)))
        .filter(is_huge);
    let before = before.map(Mapping::size).sum();
    seen.extend(mapped.iter().map(|one| (one.device, one.inode)));
    before
}

/// What root's processes have mapped of pages of each size and not touched: these pages may be promised to them. Only root's are
/// looked at: whoever is hostile could have as many mappings as it likes.
pub(super) fn promised_to_root(
    host: &InspectContext<'_>,
    processes: &[(i32, Bytes)],
) -> BTreeMap<PageSize, Bytes> {
    let of_host = |(pid, _): &&(i32, Bytes)| container(host.root, *pid).is_none();
    let of_size = |size: PageSize| {
        let is_huge = |mapping: &Mapping| host.devices.page_size(mapping.device) == Some(size);
        let promised = |(pid, touched): &(i32, Bytes)| {
            let mappings = maps::read(host.root, &maps::path(*pid), is_huge).unwrap_or_default();
            let all: Bytes = mappings.iter().map(Mapping::size).sum();
            all.saturating_sub(*touched)
        };
        (size, processes.iter().filter(of_host).map(promised).sum())
    };
    pools::of_host(&host.pools)
        .map(|row| of_size(row.pool.page_size))
        .collect()
}
